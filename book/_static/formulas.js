// The formulas behind the figures that move, as in the package, to which a test compares every one:
// sepnb.encodings.rope, .context and .alibi, and sepnb.seqpe.digits.
(() => {
  "use strict";
  const range = (count) => [...Array(count).keys()];

  /** RoPE: w_m = base^(-2m/d), radians a token, fastest first. */
  const frequencies = (d, base) => range(d / 2).map((m) => base ** ((-2 * m) / d));

  /** The score of a query and a key that are (1, 0) in every pair, `distance` tokens apart, without a scale. */
  const score = (w, distance) => w.reduce((sum, one) => sum + Math.cos(one * distance), 0);

  /** Turns of every pair in a text of L tokens. */
  const turns = (w, L) => w.map((one) => (one * L) / (2 * Math.PI));

  const clip = (value) => Math.min(1, Math.max(0, value));
  const mixed = (w, kept, s) => w.map((one, m) => kept[m] * one + ((1 - kept[m]) * one) / s);

  /** Context extensions: frequencies, d, base, factor s, trained length L, and the turns alpha and beta up to
   * which a pair is divided and from which it is kept, to changed frequencies. */
  const EXTENSIONS = {
    pi: ({ w, s }) => w.map((one) => one / s),
    ntk: ({ w, d, s }) => w.map((one, m) => one * s ** (-(2 * m) / (d - 2))),
    parts: ({ w, s, L, alpha, beta }) =>
      mixed(
        w,
        turns(w, L).map((one) => clip((one - alpha) / (beta - alpha))),
        s,
      ),
    // As in the authors' code: linear in the index of the pair, between indices rounded outwards.
    yarn: ({ w, d, base, s, L, alpha, beta }) => {
      const pair = (made) => (d * Math.log(L / (2 * Math.PI * made))) / (2 * Math.log(base));
      const first = Math.min(Math.max(Math.floor(pair(beta)), 0), d - 1);
      const last = Math.min(Math.ceil(pair(alpha)), d - 1);
      return mixed(
        w,
        w.map((_, m) => 1 - clip((m - first) / (last - first || 0.001))),
        s,
      );
    },
  };

  /** ALiBi's slopes of H heads: a geometric sequence for a power of two, else two of them, interleaved. */
  const slopes = (H) => {
    const power = 2 ** Math.floor(Math.log2(H));
    const of = (count) => range(count).map((h) => 2 ** ((-8 * (h + 1)) / count));
    return [
      ...of(power),
      ...of(2 * power)
        .filter((_, h) => h % 2 === 0)
        .slice(0, H - power),
    ];
  };

  /** The digits of a position, most significant first. */
  const digits = (p, base, width) => range(width).map((k) => Math.floor(p / base ** (width - 1 - k)) % base);

  window.sepnb = Object.assign(window.sepnb || {}, {
    formulas: { frequencies, score, turns, EXTENSIONS, slopes, digits },
  });
})();
