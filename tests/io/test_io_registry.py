import gzip
import os
import stat
import threading
import warnings
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia import io
from markovia.errors import InvalidArgument, ParseError, UnknownFormat, UnsupportedModel
from markovia.io import registry

UAI = "MARKOV 1  2  1  1 0  2  3 5"


def network():
    bn = mk.BayesianNetwork(name="demo")
    bn.add("rain", states=["no", "yes"], p=[0.8, 0.2])
    bn.add("wet", states=["no", "yes"], parents=["rain"], p=[[0.9, 0.1], [0.2, 0.8]])
    return bn


@pytest.mark.parametrize(
    "suffix", [".bif", ".json", ".uai", ".BIF", ".bif.gz", ".json.gz", ".JSON.GZ", ".uai.gz"]
)
def test_the_suffix_decides_the_format(tmp_path, suffix):
    path = tmp_path / f"my.model{suffix}"
    network().save(path)
    loaded = mk.load(str(path))
    assert len(loaded) == 2
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == suffix.casefold().endswith(".gz")


def test_every_registered_format_has_a_reader_and_a_writer():
    for name, form in io.formats().items():
        assert callable(registry.resolve(form.reader)), name
        assert callable(registry.resolve(form.writer)), name


def test_format_overrides_the_suffix(tmp_path):
    path = tmp_path / "model.txt"
    io.save(network(), path, format="bif")
    assert io.load(path, format="BIF").allclose(network(), atol=0.0)
    io.save(network(), tmp_path / "model.bif", format="json")
    assert (tmp_path / "model.bif").read_text().startswith("{")


@pytest.mark.parametrize("name", ["model.biff", "model", "model.gz", "model.bif.zip"])
def test_an_unknown_suffix_lists_the_formats(tmp_path, name):
    (tmp_path / name).write_text(UAI)
    with pytest.raises(UnknownFormat, match=r"\.xmlbif.*format=") as caught:
        mk.load(tmp_path / name)
    assert name != "model.biff" or "did you mean '.bif'" in str(caught.value)
    with pytest.raises(UnknownFormat):
        mk.save(network(), tmp_path / name)


@pytest.mark.parametrize("name", ["biff", "", 3])
def test_an_unknown_format_name_lists_the_formats(name):
    with pytest.raises(UnknownFormat, match="xdsl"):
        io.loads(UAI, name)
    with pytest.raises(UnknownFormat, match="xdsl"):
        io.dumps(network(), name)


def test_a_missing_file_is_an_ordinary_error_and_a_folder_a_clear_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        mk.load(tmp_path / "none.bif")
    (tmp_path / "folder.bif").mkdir()
    with pytest.raises(InvalidArgument, match="is a folder"):
        mk.load(tmp_path / "folder.bif")
    with pytest.raises(InvalidArgument, match="is a folder"):
        mk.save(network(), tmp_path / "folder.bif")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        mk.save(network(), tmp_path / "nowhere" / "x.bif")
    with pytest.raises(InvalidArgument, match="path"):
        mk.load(3)


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "model.bif"
    path.write_text("old")
    with pytest.raises(UnsupportedModel):
        mk.save(mk.MarkovNetwork({"a": 2}), path)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        mk.save(network(), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="permissions as on Unix")
def test_saving_keeps_permissions_and_follows_links(tmp_path):
    path, link = tmp_path / "model.bif", tmp_path / "link.bif"
    mk.save(network(), path)
    fresh = tmp_path / "plain.txt"
    fresh.write_text("")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(fresh.stat().st_mode)
    path.chmod(0o640)
    link.symlink_to(path)
    mk.save(network(), link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes as on Unix")
@pytest.mark.parametrize("linked", [False, True])
def test_saving_to_a_pipe_writes_into_it(tmp_path, linked):
    pipe = path = tmp_path / "pipe.bif"
    os.mkfifo(pipe)
    if linked:
        path = tmp_path / "link.bif"
        path.symlink_to(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    mk.save(network(), path)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    reader.join(timeout=30)
    assert received == [io.dumps(network(), "bif").encode()]
    assert set(tmp_path.iterdir()) == {pipe, path}


@pytest.mark.parametrize("form", ["bif", "xmlbif", "uai", "net", "xdsl", "dne", "dsc"])
def test_a_refused_graph_or_model_is_told_where_to_go(form):
    with pytest.raises(UnsupportedModel, match=r"not a DAG; save it as \.dagitty or \.json$"):
        io.dumps(mk.graphs.DAG([("a", "b")]), form)
    with pytest.raises(UnsupportedModel, match=r"not an UndirectedGraph; save it as \.dagitty or \.json$"):
        io.dumps(mk.graphs.UndirectedGraph([("a", "b")]), form)
    with pytest.raises(UnsupportedModel, match=r"only, not an int$"):
        io.dumps(3, form)
    if form != "uai":
        with pytest.raises(UnsupportedModel, match=r"not a MarkovNetwork; save it as \.uai or \.json"):
            io.dumps(mk.MarkovNetwork({"a": 2}), form)


def test_the_same_model_makes_the_same_compressed_bytes(tmp_path):
    mk.save(network(), tmp_path / "a.bif.gz")
    mk.save(network(), tmp_path / "b.bif.gz")
    assert (tmp_path / "a.bif.gz").read_bytes() == (tmp_path / "b.bif.gz").read_bytes()


def test_text_may_be_utf8_with_a_mark_utf16_or_latin1(tmp_path):
    bn = mk.BayesianNetwork("é", tables="uniform")
    text = io.dumps(bn, "bif")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for encoding in ("utf-8", "utf-8-sig", "utf-16"):
            (tmp_path / "m.bif").write_bytes(text.encode(encoding))
            assert mk.load(tmp_path / "m.bif").variables == ["é"], encoding
        assert io.loads("\ufeff" + text, "bif").variables == ["é"]
    with pytest.warns(UserWarning, match=r"^<string>:3:11: the byte 0xe9 is not UTF-8"):
        assert io.loads(text.encode("latin-1"), "bif").variables == ["é"]


def test_text_that_is_not_utf8_is_read_as_latin1_with_one_warning_that_says_where(tmp_path):
    text = io.dumps(mk.BayesianNetwork("é->ü", tables="uniform"), "bif").encode("latin-1")
    (tmp_path / "m.bif").write_bytes(b"// \xc3\xa9\n" + text)
    with pytest.warns(UserWarning, match="Latin-1") as caught:
        loaded = mk.load(tmp_path / "m.bif")
    assert loaded.variables == ["é", "ü"]
    assert len(caught) == 1
    assert str(caught[0].message).startswith(f"{tmp_path / 'm.bif'}:4:11: the byte 0xe9 is not UTF-8")
    assert caught[0].filename == __file__


XML = '<?xml version="1.0" encoding="{}"?>\n'


def declared(form, encoding):
    bn = mk.BayesianNetwork()
    bn.add("a", states=["s", "t"], p=[0.5, 0.5])
    bn.node_properties["a"] = {"note": "5 € für à"}
    text = io.dumps(bn, form)
    return XML.format(encoding) + text[text.index("\n") + 1 :]


@pytest.mark.parametrize("form", ["xmlbif", "xdsl"])
def test_an_xml_file_is_decoded_as_it_declares(form, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for encoding in ("windows-1252", "ISO-8859-15", "utf-8", "UTF-16", "gb18030"):
            data = declared(form, encoding).encode(encoding)
            (tmp_path / f"m.{form}").write_bytes(data)
            for loaded in (mk.load(tmp_path / f"m.{form}"), io.loads(data, form)):
                assert loaded.node_properties["a"] == {"note": "5 € für à"}, encoding
        for encoding in ("UTF-16", "cp037"):  # a declaration that can be read shows that it is wrong
            assert (
                io.loads(declared(form, encoding).encode(), form).node_properties["a"]["note"] == "5 € für à"
            )
        assert io.loads(declared(form, "klingon"), form).variables == ["a"]


@pytest.mark.parametrize("form", ["xmlbif", "xdsl"])
@pytest.mark.parametrize("encoding", ["klingon", "", "hex", "unicode_escape", "a" * 90, "\udcff\udcff"])
def test_an_unknown_declared_encoding_is_a_parse_error(form, encoding):
    with pytest.raises(ParseError, match=":1:31: expected an encoding that Python knows"):
        io.loads(declared(form, encoding).encode("utf-8", "surrogateescape"), form)


def test_bytes_that_the_declared_encoding_lacks_are_found():
    data = declared("xmlbif", "shift_jis").encode("cp1252")
    with pytest.raises(ParseError, match="declared encoding shift_jis, found the byte 0x80") as caught:
        io.loads(data, "xmlbif")
    assert caught.value.line == data[: data.index(b"\x80")].count(b"\n") + 1
    with pytest.warns(UserWarning, match="is not UTF-8"):
        io.loads(declared("xmlbif", "UTF-8").encode("cp1252"), "xmlbif")


def test_only_xml_formats_have_a_declaration():
    with pytest.raises(ParseError, match="'network'"):
        io.loads(XML.format("klingon").encode(), "bif")


def test_half_a_character_cannot_be_saved(tmp_path):
    bn = mk.BayesianNetwork("a", tables="uniform", name="\ud800")
    with pytest.raises(InvalidArgument, match="half a character"):
        mk.save(bn, tmp_path / "m.bif")
    assert not list(tmp_path.iterdir())


def test_nul_bytes_and_broken_archives_are_parse_errors(tmp_path):
    cases = {
        "nul.bif": b"network x\n {\0}",
        "plain.bif.gz": b"network x { }",
        "cut.bif.gz": gzip.compress(b"network x { }" * 1000)[:-20],
        "crc.bif.gz": gzip.compress(b"network x { }")[:-8] + b"12345678",
        "bad16.bif": b"\xff\xfe\x00\xd8\x00",
        "empty.bif": b"",
        "empty.json.gz": b"",
    }
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ParseError) as caught:
            mk.load(tmp_path / name)
        assert caught.value.file == str(tmp_path / name)
    with pytest.raises(ParseError, match=r":2:3: .*NUL"):
        mk.load(tmp_path / "nul.bif")


def test_a_decompression_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "MAX_BYTES", 2**22)
    (tmp_path / "bomb.bif.gz").write_bytes(gzip.compress(b" " * 2**24))
    with pytest.raises(ParseError, match="at most 4,194,304 bytes"):
        mk.load(tmp_path / "bomb.bif.gz")


def test_running_out_of_memory_while_reading_is_a_parse_error(monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(registry, "resolve", lambda target: fail)
    with pytest.raises(ParseError, match="memory"):
        io.loads(UAI, "uai")


@pytest.mark.parametrize("name", sorted(io.formats()))
@given(data=st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_random_bytes_never_give_another_error_in_any_format(name, data):
    with warnings.catch_warnings(), suppress(ParseError):
        warnings.simplefilter("ignore", UserWarning)
        io.loads(data, name)


def test_bundled_models_are_loaded_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert mk.load("asia").allclose(mk.examples.asia())
    assert mk.load("monty-hall", kind=mk.BayesianNetwork).allclose(mk.examples.monty_hall())
    assert mk.load("Monty_Hall").allclose(mk.examples.monty_hall())
    with pytest.raises(mk.errors.InvalidArgument, match="holds a BayesianNetwork, not a MarkovNetwork"):
        mk.load("asia", kind=mk.MarkovNetwork)
    with pytest.raises(
        mk.errors.UnknownFormat, match=r"neither a file nor a bundled model.*did you mean 'asia'"
    ):
        mk.load("asai")
    (tmp_path / "asia").write_text(mk.io.dumps(mk.examples.cancer(), "bif"))
    with pytest.raises(mk.errors.UnknownFormat, match="suffix"):
        mk.load("asia")  # the file wins
    assert mk.load("asia", format="bif").allclose(mk.examples.cancer())


@pytest.mark.parametrize("name", ["alarm", "child", "insurance", "sachs", "MUNIN"])
def test_a_classic_that_is_not_bundled_says_where_to_get_it(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        mk.errors.UnknownFormat, match=r"not bundled; download .*\.bif\.gz from .*bnlearn\.com"
    ):
        mk.load(name)


@pytest.mark.parametrize("name", sorted(set(mk.io.formats()) - {"lavaan", "pomdp"}))
def test_text_is_read_in_the_format_that_it_begins_like(name):
    text = mk.io.dumps(mk.examples.cancer(), name)
    for form in (text, text.encode(), "\ufeff  \n" + text if name not in ("xmlbif", "xdsl") else text):
        assert type(mk.io.loads(form)) is type(mk.io.loads(text, name))
    with pytest.raises(mk.errors.UnknownFormat, match="begins like no format"):
        mk.io.loads("once upon a time")


def test_a_regression_is_taken_for_lavaan():
    assert mk.io.loads("y ~ a + b").edges == mk.io.loads("y ~ a + b", "lavaan").edges
