// Exact inference in the page: a bucket tree over tables, for discrete models that are small enough.
//
// The variables are eliminated in the order of min-fill. Each makes a cluster of itself and the neighbours it has
// left, whose parent is the cluster of the neighbour that is eliminated next. One pass towards the roots and one
// back (Shenoy and Shafer's messages, stored as in Hugin) give the marginals of all variables and the probability
// of the findings. Time and memory are the sum of the clusters' sizes, which `compile(model).cost` says beforehand.

/**
 * @typedef {{name: string, states: string[]}} Variable
 * @typedef {{scope: number[], values: ArrayLike<number>, child?: number}} Table
 *   Values run over the product of the scope's states, the last fastest; `child` marks a conditional table.
 * @typedef {{variables: Variable[], tables: Table[]}} TableModel
 * @typedef {{state: string}|{not: string[]}|{weights: Object<string, number>}} Finding
 * @typedef {{scope: number[], sizes: number[], own: number, parent: number, keep: Int32Array, onParent: Int32Array,
 *   stride: number}} Cluster
 *   `keep` maps each cell to a cell of the message to the parent, `onParent` each cell of the parent to it.
 * @typedef {{marginals: Float64Array[], logEvidence: number}} Beliefs
 */

/**
 * Make ready for questions: find an order, build the tree, place the tables.
 * @param {TableModel} model
 */
export function compile(model) {
  const sizes = model.variables.map((v) => v.states.length);
  const index = new Map(model.variables.map((v, i) => [v.name, i]));
  const { order, clusters } = tree(sizes, model.tables.map((t) => t.scope));
  const turn = new Int32Array(sizes.length);
  order.forEach((v, k) => (turn[v] = k));
  const placed = model.tables.map((table) => {
    const home = Math.min(...table.scope.map((v) => turn[v]));
    return { table, home, cells: positions(clusters[home].scope, clusters[home].sizes, table.scope, sizes) };
  });
  const cost = clusters.reduce((sum, c) => sum + size(c), 0);

  /**
   * @param {Object<string, Finding>} given
   * @param {Object<string, string>} done
   */
  function potentials(given, done) {
    const held = new Map(Object.entries(done).map(([name, state]) => [variable(name), code(name, state)]));
    const tables = clusters.map((c) => new Float64Array(size(c)).fill(1));
    for (const { table, home, cells } of placed) {
      const into = tables[home];
      const set = table.child === undefined ? undefined : held.get(table.child);
      if (set !== undefined && table.child !== undefined) {
        const k = sizes[table.child]; // the child is last in its scope, so its state is the cell's remainder
        for (let i = 0; i < into.length; i++) if (cells[i] % k !== set) into[i] = 0;
      } else {
        for (let i = 0; i < into.length; i++) into[i] *= table.values[cells[i]];
      }
    }
    for (const [name, finding] of Object.entries(given)) {
      const v = variable(name);
      const weights = likelihood(model.variables[v], finding);
      const { stride } = clusters[turn[v]];
      const into = tables[turn[v]];
      for (let i = 0; i < into.length; i++) into[i] *= weights[Math.floor(i / stride) % weights.length];
    }
    return tables;
  }

  /** @param {string} name */
  function variable(name) {
    const v = index.get(name);
    if (v === undefined) throw new Error(`the model has no variable ${JSON.stringify(name)}`);
    return v;
  }

  /** @param {string} name @param {string} state */
  function code(name, state) {
    return position(model.variables[variable(name)], state);
  }

  /**
   * Send messages towards the roots; each is scaled to the largest entry or to sum one, the logarithms are kept.
   * @param {Float64Array[]} tables
   * @param {boolean} largest
   */
  function collect(tables, largest) {
    let log = 0;
    const messages = clusters.map((cluster, k) => {
      const message = new Float64Array(cluster.parent < 0 ? 1 : size(cluster) / cluster.sizes[cluster.own]);
      const table = tables[k];
      for (let i = 0; i < table.length; i++) {
        const j = cluster.keep[i];
        message[j] = largest ? Math.max(message[j], table[i]) : message[j] + table[i];
      }
      const scale = largest ? message.reduce((a, b) => Math.max(a, b), 0) : message.reduce((a, b) => a + b, 0);
      if (!(scale > 0)) throw new Error("the findings contradict each other: together they have probability zero");
      log += Math.log(scale);
      for (let j = 0; j < message.length; j++) message[j] /= scale;
      if (cluster.parent >= 0) {
        const up = tables[cluster.parent];
        for (let i = 0; i < up.length; i++) up[i] *= message[cluster.onParent[i]];
      }
      return message;
    });
    return { log, messages };
  }

  /**
   * The marginals of all variables and the logarithm of what all tables and findings sum to.
   * @param {Object<string, Finding>} [given]
   * @param {Object<string, string>} [done]
   * @returns {Beliefs}
   */
  function beliefs(given = {}, done = {}) {
    const tables = potentials(given, done);
    const { log, messages } = collect(tables, false);
    /** @type {Float64Array[]} */
    const marginals = new Array(sizes.length);
    for (let k = clusters.length - 1; k >= 0; k--) {
      const cluster = clusters[k];
      const table = tables[k];
      if (cluster.parent >= 0) {
        const up = tables[cluster.parent];
        const back = new Float64Array(messages[k].length);
        for (let i = 0; i < up.length; i++) back[cluster.onParent[i]] += up[i];
        for (let j = 0; j < back.length; j++) back[j] = messages[k][j] > 0 ? back[j] / messages[k][j] : 0;
        for (let i = 0; i < table.length; i++) table[i] *= back[cluster.keep[i]];
      }
      const marginal = new Float64Array(cluster.sizes[cluster.own]);
      for (let i = 0; i < table.length; i++) marginal[Math.floor(i / cluster.stride) % marginal.length] += table[i];
      const total = marginal.reduce((a, b) => a + b, 0);
      for (let i = 0; i < table.length; i++) table[i] /= total;
      marginals[order[k]] = marginal.map((p) => p / total);
    }
    return { marginals, logEvidence: log };
  }

  /**
   * The most probable states of all variables together, and the logarithm of their weight.
   * @param {Object<string, Finding>} [given]
   * @param {Object<string, string>} [done]
   */
  function explain(given = {}, done = {}) {
    const tables = potentials(given, done);
    const { log } = collect(tables, true);
    const states = new Int32Array(sizes.length);
    for (let k = clusters.length - 1; k >= 0; k--) {
      const { scope, sizes: shape, own, stride } = clusters[k];
      let start = 0;
      scope.forEach((v, d) => (start = start * shape[d] + (d === own ? 0 : states[v])));
      let best = 0;
      for (let s = 1; s < shape[own]; s++) {
        if (tables[k][start + s * stride] > tables[k][start + best * stride]) best = s;
      }
      states[scope[own]] = best;
    }
    return { states, logWeight: log };
  }

  return { cost, order, beliefs, explain };
}

/**
 * The likelihood of each state under a finding.
 * @param {Variable} variable
 * @param {Finding} finding
 * @returns {number[]}
 */
export function likelihood(variable, finding) {
  if ("state" in finding) {
    const k = position(variable, finding.state);
    return variable.states.map((_, i) => (i === k ? 1 : 0));
  }
  if ("not" in finding) {
    const out = new Set(finding.not.map((state) => position(variable, state)));
    return variable.states.map((_, i) => (out.has(i) ? 0 : 1));
  }
  if ("weights" in finding) {
    Object.keys(finding.weights).forEach((state) => position(variable, state));
    return variable.states.map((state) => finding.weights[state] ?? 0);
  }
  throw new Error(`${JSON.stringify(variable.name)} has states; a number says nothing about it`);
}

/** @param {Variable} variable @param {string} state */
function position(variable, state) {
  const k = variable.states.indexOf(state);
  if (k < 0) throw new Error(`${JSON.stringify(variable.name)} has no state ${JSON.stringify(state)}`);
  return k;
}

/** @param {Cluster} cluster */
function size(cluster) {
  return cluster.sizes.reduce((a, b) => a * b, 1);
}

/**
 * Eliminate by min-fill (ties: the smaller table, then the first) and return the clusters in that order.
 * @param {number[]} sizes
 * @param {number[][]} scopes
 */
function tree(sizes, scopes) {
  const near = sizes.map(() => /** @type {Set<number>} */ (new Set()));
  for (const scope of scopes) for (const a of scope) for (const b of scope) if (a !== b) near[a].add(b);
  const left = new Set(sizes.keys());
  /** @type {number[]} */ const order = [];
  /** @type {number[][]} */ const scopesOf = [];
  const scores = sizes.map((_, v) => score(v));
  /** @param {number} v @returns {[number, number]} */
  function score(v) {
    const around = [...near[v]];
    let fill = 0;
    for (let i = 0; i < around.length; i++) {
      for (let j = 0; j < i; j++) if (!near[around[i]].has(around[j])) fill++;
    }
    return [fill, around.reduce((product, u) => product * sizes[u], sizes[v])];
  }
  while (left.size) {
    let best = -1;
    for (const v of left) {
      if (best < 0 || scores[v][0] < scores[best][0]
        || (scores[v][0] === scores[best][0] && scores[v][1] < scores[best][1])) best = v;
    }
    const around = [...near[best]];
    const touched = new Set(around);
    for (const a of around) {
      near[a].delete(best);
      for (const b of around) {
        if (a !== b && !near[a].has(b)) {
          near[a].add(b);
          near[b].add(a);
          for (const u of near[a]) if (near[b].has(u)) touched.add(u);
        }
      }
    }
    left.delete(best);
    for (const u of touched) scores[u] = score(u);
    order.push(best);
    scopesOf.push([best, ...around].sort((a, b) => a - b));
  }
  const turn = new Map(order.map((v, k) => [v, k]));
  const shapes = scopesOf.map((scope) => scope.map((v) => sizes[v]));
  const clusters = scopesOf.map((scope, k) => {
    const own = scope.indexOf(order[k]);
    const rest = scope.filter((v) => v !== order[k]);
    const parent = rest.length ? Math.min(...rest.map((v) => turn.get(v) ?? 0)) : -1;
    const keep = positions(scope, shapes[k], rest, sizes);
    const onParent = parent < 0 ? new Int32Array(0) : positions(scopesOf[parent], shapes[parent], rest, sizes);
    const stride = shapes[k].slice(own + 1).reduce((a, b) => a * b, 1);
    return { scope, sizes: shapes[k], own, parent, keep, onParent, stride };
  });
  return { order, clusters };
}

/**
 * Map each cell of a table over `scope` to the cell of the table over `inner` that agrees with it.
 * @param {number[]} scope
 * @param {number[]} shape
 * @param {number[]} inner
 * @param {number[]} sizes
 */
function positions(scope, shape, inner, sizes) {
  const steps = scope.map((v) => {
    const d = inner.indexOf(v);
    return d < 0 ? 0 : inner.slice(d + 1).reduce((product, u) => product * sizes[u], 1);
  });
  const cells = new Int32Array(shape.reduce((a, b) => a * b, 1));
  const at = scope.map(() => 0);
  let cell = 0;
  for (let i = 0; i < cells.length; i++) {
    cells[i] = cell;
    for (let d = scope.length - 1; d >= 0; d--) {
      cell += steps[d];
      if (++at[d] < shape[d]) break;
      cell -= steps[d] * shape[d];
      at[d] = 0;
    }
  }
  return cells;
}
