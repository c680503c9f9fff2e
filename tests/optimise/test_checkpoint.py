"""Files that runs go on from: what is written is read, whole or not at all, and only by the run it belongs to."""

import os
import subprocess
import sys

import numpy as np
import pytest

from markovia.errors import InvalidArgument
from markovia.optimise import checkpoint
from markovia.optimise.checkpoint import Checkpoint, digest_of, packed, unpacked


def test_arrays_of_all_types_and_plain_values_come_back_as_they_were(tmp_path):
    arrays = {
        "file": np.arange(3, dtype=np.int8),  # NumPy's writer has a parameter of this name
        "about": np.array(2.5),
        "text": np.array(["a", "bc"]),
        "none": np.zeros((0, 4), dtype=np.float32),
    }
    values = {"rng": np.random.default_rng(1).bit_generator.state, "trace": [1.5, None], "name": "x"}
    Checkpoint(tmp_path / "run.npz", "a").write(arrays, values)
    found = Checkpoint(tmp_path / "run.npz", "a").read()
    assert found.values == values
    assert list(found.arrays) == list(arrays)
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert np.array_equal(found.arrays[name], array)


def test_a_writing_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    file = Checkpoint(tmp_path / "run.npz")
    file.write({"x": np.ones(3)})

    def broken(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        file.write({"x": np.zeros(3)})
    assert Checkpoint(tmp_path / "run.npz").read().arrays["x"].tolist() == [1, 1, 1]
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


def test_files_of_other_runs_other_kinds_and_pickled_objects_are_refused(tmp_path):
    file = tmp_path / "run.npz"
    Checkpoint(file, "a").write({})
    with pytest.raises(InvalidArgument, match="belongs to another run, of other data or settings"):
        Checkpoint(file, "b").read()
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(InvalidArgument, match="is no checkpoint"):
        Checkpoint(file, "a").read()
    with pytest.raises(ValueError, match=r"[Oo]bject arrays"):
        Checkpoint(file).write({"x": np.array([{}], dtype=object)})
    with pytest.raises(InvalidArgument, match="folder that is not there"):
        Checkpoint(tmp_path / "no" / "run.npz")


def test_it_is_due_some_time_after_the_last_writing(tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(checkpoint, "now", lambda: clock[0])
    file = Checkpoint(tmp_path / "run.npz")
    clock[0] += checkpoint.EVERY - 0.1
    assert not file.due()
    clock[0] += 0.2
    assert file.due()
    assert not Checkpoint(None).due()
    file.write({})
    assert not file.due()


def test_trees_keep_their_structure_and_types():
    tree = {"b": np.arange(2, dtype=np.int32), "a": (np.float32(0.5), [np.ones((1, 2))])}
    found = unpacked("x", packed("x", tree), tree)
    assert found["a"][0].dtype == np.float32
    assert found["b"].tolist() == [0, 1]
    assert found["a"][1][0].shape == (1, 2)


def test_digests_differ_by_type_shape_and_content_and_agree_between_processes():
    same = np.arange(6.0)
    parts = [
        same,
        same.astype(np.float32),
        same.reshape(2, 3),
        same + 1,
        same[::-1],
        np.array(list("abc")),
        "abc",
    ]
    assert len({digest_of(p) for p in parts}) == len(parts)
    assert digest_of(same[::2]) == digest_of(same[::2].copy())
    dates = np.array(["2020-01-01"], dtype="datetime64[D]")
    assert digest_of(dates) != digest_of(dates + 1)
    words = np.array(["a", "b"], dtype=object)
    code = (
        "import numpy as np; from markovia.optimise.checkpoint import digest_of; "
        "print(digest_of(np.array(['a', 'b'], dtype=object), np.arange(6.0)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == digest_of(words, same)
