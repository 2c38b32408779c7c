// The panel of "Break it and heal it": a small model is asked, in the page, for values of keys that stand in a
// text. How long the text is and by how much positions are slowed down can be moved. What is computed stands in
// model.js, controls and chart in moving.js.
(() => {
  "use strict";
  const { figure, panel, chart, element, model: M } = sepnb;

  const percent = (share) => `${Math.round(100 * share)} %`;

  /** The value that the model thinks likeliest at a place of the text. */
  const answer = (logits, place, values) => {
    const row = logits.data.subarray(place * logits.cols, (place + 1) * logits.cols);
    return values.reduce((best, one) => (row[one] > row[best] ? one : best));
  };

  /** The text, symbol by symbol: pairs of a key and its value stand out, and at its end every question has
   * its answer. `right` is by place of the question. */
  const drawText = (stage, { tokens, targets, questions, answers, kinds, names }) => {
    const first = questions[0];
    const text = element("p", { class: "recall-text" });
    tokens.slice(0, first).forEach((token, i) => {
      const kind = kinds[token];
      const pair = kind === "key" || (kind === "value" && i > 0 && kinds[tokens[i - 1]] === "key");
      text.append(element("span", { class: pair ? `recall-${kind}` : "recall-noise" }, names[token]));
    });
    const asked = element("p", { class: "recall-asked" });
    questions.forEach((place, k) => {
      const right = answers[k] === targets[place];
      const said = right ? "\u2713" : `\u2717 it is ${names[targets[place]]}`;
      asked.append(
        element(
          "span",
          { class: right ? "recall-right" : "recall-wrong" },
          `${names[tokens[place]]} \u2192 ${names[answers[k]]} ${said}`,
        ),
      );
    });
    stage.append(asked, text);
  };

  const drawShares = (stage, { length, times, factor, shares, chosen }) => {
    const x = times.map((one) => one * length);
    chart(stage, {
      height: 190,
      x: { range: [length / 1.15, 1.15 * x[x.length - 1]], log: true, at: x, label: "symbols in the text" },
      y: { range: [0, 1], label: "values found", text: percent },
      marks: [{ x: x[chosen] }],
      series: [
        { x, y: shares[1], look: "mixed", words: "as trained" },
        ...(factor === 1 ? [] : [{ x, y: shares[factor], look: "pos", words: `${factor} times slower` }]),
      ],
      alt: "Share of values found against the length of the text, as trained and slowed down",
    });
  };

  // `texts` are, for each of `times`, samples {tokens, targets, questions}; `shares` are, by factor, the shares
  // of values found at each of `times`, which the chapter computed over many texts.
  figure("recall", (box, { packed, texts, times, factors, bands, kinds, names, shares, many }) => {
    const own = M.unpack(packed),
      length = packed.length,
      values = kinds.flatMap((kind, token) => (kind === "value" ? [token] : []));
    const read = (sample, factor) => {
      const { tokens, questions } = sample;
      const model = M.slowedDown(own, factor, bands);
      const logits = M.logits(model, tokens, tokens.map((_, i) => i));
      return questions.map((place) => answer(logits, place, values));
    };
    box.sepnb = { read: (chosen, which, factor) => read(texts[chosen][which], factor) };
    panel(box, {
      controls: [
        {
          name: "chosen",
          label: "Make the text longer",
          min: 0,
          max: times.length - 1,
          value: 0,
          text: (at) => `${times[at] * length} symbols`,
        },
        {
          name: "slower",
          label: "Slow positions down",
          min: 0,
          max: factors.length - 1,
          value: 0,
          text: (at) => (factors[at] === 1 ? "as trained" : `${factors[at]} times`),
        },
        { name: "which", label: "Another text", min: 1, max: texts[0].length, value: 1 },
      ],
      draw: ({ chosen, slower, which }, stage) => {
        const sample = texts[chosen][which - 1],
          factor = factors[slower];
        const answers = read(sample, factor);
        stage.replaceChildren();
        drawText(stage, { ...sample, answers, kinds, names });
        drawShares(stage, { length, times, factor, shares, chosen });
        const right = answers.filter((one, k) => one === sample.targets[sample.questions[k]]).length;
        const how = factor === 1 ? "With positions as trained" : `With positions ${factor} times slower`;
        return (
          `${how} the model answers ${right} of these ${answers.length} questions, and in ${many} texts of ` +
          `this length it finds ${percent(shares[factor][chosen])} of the values.`
        );
      },
    });
  });
})();
