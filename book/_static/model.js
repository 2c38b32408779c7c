// The separated transformer once more, in plain JavaScript and without a library: what sepnb.models.fast.packed
// writes, computed in the browser. Names are those of the Python package; a test holds the logits against it.
//
// Letters: N tokens, w width of one stream, d width of a head. A matrix is {rows, cols, data}, row after row.
// A state is one matrix [N, w] per stream: {pos, sem}.
(() => {
  "use strict";

  // --- weights ----------------------------------------------------------------------------------------------

  /** The number that 16 bits stand for: a sign, 5 bits of exponent, 10 of fraction. */
  const half = (bits) => {
    const sign = bits & 0x8000 ? -1 : 1,
      exponent = (bits >> 10) & 31,
      fraction = bits & 1023;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  };

  const matrix = (rows, cols, data = new Float64Array(rows * cols)) => ({ rows, cols, data });

  /** A packed model with its weights as matrices, by their names in torch; a vector has one row. */
  const unpack = (packed) => {
    const bytes = Uint8Array.from(atob(packed.weights), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer),
      weights = {};
    let at = 0;
    for (const [name, shape] of packed.tensors) {
      const one = matrix(shape.length > 1 ? shape[0] : 1, shape[shape.length - 1]);
      for (let k = 0; k < one.data.length; k++, at += 2)
        one.data[k] = half(view.getUint16(at, true));
      weights[name] = one;
    }
    return { ...packed, weights };
  };

  // --- the maps ---------------------------------------------------------------------------------------------

  /** x W^T, as torch.nn.Linear has it: x [N, columns], W [out, in]; of W the columns from `first` on. */
  const linear = (x, W, first = 0) => {
    const y = matrix(x.rows, W.rows),
      input = x.data,
      weight = W.data,
      output = y.data;
    for (let i = 0; i < x.rows; i++) {
      for (let o = 0; o < W.rows; o++) {
        const a = i * x.cols,
          b = o * W.cols + first;
        let sum = 0;
        for (let c = 0; c < x.cols; c++) sum += input[a + c] * weight[b + c];
        output[i * W.rows + o] = sum;
      }
    }
    return y;
  };

  const plus = (x, y) =>
    matrix(
      x.rows,
      x.cols,
      x.data.map((value, k) => value + y.data[k]),
    );

  /** LayerNorm of each row of one stream: the other stream has no part in its mean or its scale. */
  const norm = (x, gain, bias, eps = 1e-5) => {
    const y = matrix(x.rows, x.cols);
    for (let i = 0; i < x.rows; i++) {
      const row = x.data.subarray(i * x.cols, (i + 1) * x.cols);
      const mean = row.reduce((sum, value) => sum + value, 0) / x.cols;
      const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.cols;
      const scale = 1 / Math.sqrt(variance + eps);
      row.forEach((value, c) => {
        y.data[i * x.cols + c] = (value - mean) * scale * gain.data[c] + bias.data[c];
      });
    }
    return y;
  };

  /** The error function, to 2e-7 (Abramowitz and Stegun 1964, 7.1.26). */
  const erf = (x) => {
    const t = 1 / (1 + 0.3275911 * Math.abs(x));
    const polynomial =
      ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t +
        0.254829592) *
      t;
    return Math.sign(x) * (1 - polynomial * Math.exp(-x * x));
  };

  const gelu = (x) => 0.5 * x * (1 + erf(x / Math.SQRT2));

  /** Angular frequencies of a sinusoid, w_m = base^(-2m/width), one for every sine with its cosine.
   *
   * Slowed down by parts: a wave with at least `beta` turns in `length` positions is kept, one with at most
   * `alpha` is divided by `factor`, and in between the share that is kept grows linearly with the turns. */
  const frequencies = (width, base, slowed) =>
    Float64Array.from({ length: Math.ceil(width / 2) }, (_, m) => {
      const w = base ** ((-2 * m) / width);
      if (!slowed) return w;
      const { factor, length, alpha, beta } = slowed,
        turns = (length * w) / (2 * Math.PI),
        kept = Math.min(1, Math.max(0, (turns - alpha) / (beta - alpha)));
      return kept * w + ((1 - kept) * w) / factor;
    });

  /** Sines and cosines in turn: column 2m is sin(p w_m), column 2m + 1 cos(p w_m). */
  const sinusoid = (positions, width, base, slowed = null) => {
    const x = matrix(positions.length, width),
      w = frequencies(width, base, slowed);
    positions.forEach((p, i) => {
      for (let c = 0; c < width; c++) {
        const angle = p * w[c >> 1];
        x.data[i * width + c] = c % 2 ? Math.cos(angle) : Math.sin(angle);
      }
    });
    return x;
  };

  // --- attention --------------------------------------------------------------------------------------------

  /** Columns of each stream in the joined input of a group of heads. */
  const starts = (model, reads) => {
    let next = 0;
    return Object.fromEntries(
      reads.map((name) => [name, (next += model.streams[name]) - model.streams[name]]),
    );
  };

  /** What the logits of a query are multiplied by that sees so many keys: with log-n scaling
   * max(1, ln keys / ln L), so that attention over more keys than in training is as sharp as it was. */
  const sharpness = (model, keys) =>
    model.log_scale ? Math.max(1, Math.log(keys) / Math.log(model.length)) : 1;

  /** Scores of one head, [N, N], from queries in columns q and keys in columns k on; -Infinity where a query
   * may not look: ahead, and `window` or more back. */
  const scoresOf = (model, queries, keys, q, k, window) => {
    const n = queries.rows,
      d = model.head_width,
      scores = matrix(n, n, new Float64Array(n * n).fill(-Infinity));
    const asked = queries.data,
      given = keys.data;
    for (let i = 0; i < n; i++) {
      const first = Math.max(0, i - window + 1),
        scale = sharpness(model, i - first + 1) / Math.sqrt(d);
      for (let j = first; j <= i; j++) {
        let sum = 0;
        const a = i * queries.cols + q,
          b = j * keys.cols + k;
        for (let c = 0; c < d; c++) sum += asked[a + c] * given[b + c];
        scores.data[i * n + j] = sum * scale;
      }
    }
    return scores;
  };

  const softmax = (scores) => {
    const weights = matrix(scores.rows, scores.cols);
    for (let i = 0; i < scores.rows; i++) {
      const row = scores.data.subarray(i * scores.cols, (i + 1) * scores.cols);
      const most = row.reduce((a, b) => Math.max(a, b), -Infinity);
      let sum = 0;
      row.forEach((value, j) => {
        sum += weights.data[i * scores.cols + j] = Math.exp(value - most);
      });
      for (let j = 0; j < scores.cols; j++) weights.data[i * scores.cols + j] /= sum;
    }
    return weights;
  };

  /** One layer of attention: normalised streams in, what is added to each stream out. Queries and keys may
   * read every stream, W_Q and W_K are the only maps that do; values and outputs stay in their own.
   *
   * `watch(head, parts)` is shown the heads: of each the weights, and its score as the sum of the products of
   * what either stream gives to the query and to the key. */
  const attention = (model, number, layer, u, window, watch) => {
    const at = `transformer.blocks.${number}.attention`,
      d = model.head_width,
      w = model.weights;
    const values = {},
      z = {};
    for (const name of Object.keys(model.streams)) {
      const block = w[`${at}.value.blocks.${name}.weight`];
      if (!block) continue; // a stream that nobody reads afterwards has no values
      values[name] = linear(u[name], block);
      z[name] = matrix(u[name].rows, values[name].cols);
    }
    layer.groups.forEach((group, g) => {
      const W = w[`${at}.query_key.${g}.weight`],
        columns = starts(model, group.reads);
      const made = group.reads.map((name) => [name, linear(u[name], W, columns[name])]);
      const joined = made.map(([, one]) => one).reduce(plus);
      group.heads.forEach(({ head, writes }, h) => {
        const q = h * d,
          k = (group.heads.length + h) * d;
        const weights = softmax(scoresOf(model, joined, joined, q, k, window));
        const offset = head * d - starts(model, Object.keys(model.streams))[writes];
        average(weights, values[writes], z[writes], offset, d);
        const term = ([a, x], [b, y]) => [`${a} · ${b}`, scoresOf(model, x, y, q, k, window)];
        watch(head, {
          weights,
          terms: () =>
            Object.fromEntries(made.flatMap((one) => made.map((other) => term(one, other)))),
        });
      });
    });
    for (const name of Object.keys(z))
      z[name] = linear(z[name], w[`${at}.output.blocks.${name}.weight`]);
    return z;
  };

  /** Into d columns of z: the values of all tokens, averaged with the weights. */
  const average = (weights, values, z, offset, d) => {
    const n = weights.rows;
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        const share = weights.data[i * n + j];
        if (share === 0) continue;
        for (let c = offset; c < offset + d; c++) {
          z.data[i * z.cols + c] += share * values.data[j * values.cols + c];
        }
      }
    }
  };

  // --- the model --------------------------------------------------------------------------------------------

  /** Logits [N, V] of tokens that stand at `positions`.
   *
   * `window`: tokens that a query sees, itself included. `watch(layer, head, parts)`: see `attention`. */
  const logits = (model, tokens, positions, { window = Infinity, watch = () => {} } = {}) => {
    const w = model.weights,
      embedding = w["embedding.weight"],
      n = tokens.length;
    const sem = matrix(n, embedding.cols);
    tokens.forEach((token, i) => {
      sem.data.set(
        embedding.data.subarray(token * sem.cols, (token + 1) * sem.cols),
        i * sem.cols,
      );
    });
    let x = { pos: sinusoid(positions, model.streams.pos, model.base, model.slowed), sem };
    model.layers.forEach((layer, number) => {
      const at = `transformer.blocks.${number}`;
      const normed = (which, name) =>
        norm(x[name], w[`${at}.${which}.gain.${name}`], w[`${at}.${which}.bias.${name}`]);
      const u = Object.fromEntries(
        layer.normalised.map((name) => [name, normed("attention_norm", name)]),
      );
      const added = attention(model, number, layer, u, window, (head, parts) =>
        watch(number, head, parts),
      );
      x = Object.fromEntries(layer.outputs.map((name) => [name, plus(x[name], added[name])]));
      for (const name of layer.outputs) {
        const hidden = linear(
          normed("mlp_norm", name),
          w[`${at}.mlp.up.blocks.${name}.weight`],
        );
        hidden.data.forEach((value, k) => {
          hidden.data[k] = gelu(value);
        });
        x[name] = plus(x[name], linear(hidden, w[`${at}.mlp.down.blocks.${name}.weight`]));
      }
    });
    return linear(norm(x.sem, w["norm.gain.sem"], w["norm.bias.sem"]), w["head.weight"]);
  };

  /** The same weights, read at positions that are slowed down by this factor, by parts in the bands `alpha` and
   * `beta`, with log-n scaling; factor 1 is the model as it was trained. */
  const slowedDown = (model, factor, { alpha, beta } = {}) =>
    factor === 1
      ? { ...model, slowed: null, log_scale: false }
      : { ...model, slowed: { factor, length: model.length, alpha, beta }, log_scale: true };

  /** The rules of evaluation: a model, tokens and a start index to logits [N, V]. `watch` is told besides of
   * which tokens a piece serves, those between `from` and `to`, and which token stands first in it. */
  const whole = (model, tokens, start, watch, window) => {
    const served = { first: 0, from: 0, to: tokens.length };
    const told = (layer, head, parts) => watch(layer, head, { ...served, ...parts });
    return logits(
      model,
      tokens,
      tokens.map((_, i) => start + i),
      { window, watch: told },
    );
  };

  const RULES = {
    plain: (model, tokens, start, { watch = () => {} } = {}) =>
      whole(model, tokens, start, watch),
    masked: (model, tokens, start, { watch = () => {} } = {}) =>
      whole(model, tokens, start, watch, model.length),
    // In pieces of `stride` bytes, each read from index 0 together with the bytes before it that fit into L.
    reread: (model, tokens, _, { watch = () => {}, stride = 8 } = {}) => {
      const answers = model.weights["head.weight"].rows,
        found = matrix(tokens.length, answers),
        length = model.length;
      for (let from = 0; from < tokens.length;) {
        const to = Math.min(from ? from + stride : length, tokens.length),
          first = Math.max(0, to - length);
        const piece = tokens.slice(first, to),
          served = { first, from, to };
        const told = (layer, head, parts) => watch(layer, head, { ...served, ...parts });
        const own = logits(
          model,
          piece,
          piece.map((_, i) => i),
          { watch: told },
        );
        found.data.set(own.data.subarray((from - first) * answers), from * answers);
        from = to;
      }
      return found;
    },
  };

  /** Of logits [N, V] the probabilities of what may come after token i. */
  const probabilities = (found, i) =>
    softmax(matrix(1, found.cols, found.data.slice(i * found.cols, (i + 1) * found.cols))).data;

  /** Bits that a model pays for tokens 1 to N - 1, each given those before it. */
  const bits = (found, tokens) =>
    tokens.slice(1).map((token, i) => -Math.log2(probabilities(found, i)[token]));

  window.sepnb = Object.assign(window.sepnb || {}, {
    model: { unpack, logits, RULES, slowedDown, frequencies, probabilities, bits, half, sinusoid },
  });
})();
