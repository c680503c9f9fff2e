"""Compiling a model of function nodes: from a problem to one log density of an unconstrained vector.

`factors/functions` reads what a user writes into a `FunctionNode` when it is added, and is not called again. Everything
else happens here when a question is asked, in the order of the calls of `program.program_of`:

1. `layout`: names become nodes, constants and plates; what is observed, how long plates are, parents before children.
2. `node_densities`: how one node's function is called with aligned arrays, and the log density of its elements.
3. `node_tracing`: every function called once with shapes alone: supports, states, what is discrete; with `soft_evidence`
   (bounds and likelihoods in place of values) and `non_centred` (location plus scale times a standard part).
4. `function_checks`: every function called once with numbers (`probe_values`, from the prior by `simulation` where those
   will not do): that it acts element by element, and what it returns.
5. `program`: the density itself, a `density.Density`. `index_recording` finds how functions index foreign plates,
   `plated_elimination` sums discrete variables out, `row_batches` splits the likelihood over rows, and `function_digest`
   names what it computes, so that `compiled_functions` compiles it once.

Back from numbers to the model: `draw_stats` are draws as engines make them, `state_draws` the discrete variables recovered
for each of them, `simulation` draws predictions, `assignments` scores whole assignments.
"""
