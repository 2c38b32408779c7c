// The results of the search page, ranked by Sphinx, each with a piece of its text. The texts are a file of the
// book: Sphinx's script would fetch every page, which a browser refuses where the book is read from a folder.
"use strict";
{
  const REFERENCE = "book/api/", MOST_NAMES = 12, BEFORE = 90, LONG = 240;

  // The passage that holds most of the words, and where its first word stands.
  const best = (page, anchor, words) => {
    let found = null;
    for (const [id, text] of searchTexts[page] || []) {
      if (anchor && anchor !== `#${id}`) continue;
      const lower = text.toLowerCase();
      const places = words.map((word) => lower.indexOf(word)).filter((at) => at >= 0);
      if (places.length > (found ? found.places.length : 0)) found = { id, text, places };
    }
    return found;
  };

  const excerpt = ({ text, places }, words) => {
    const first = Math.min(...places);
    const start = first > BEFORE ? text.lastIndexOf(" ", first - BEFORE) + 1 : 0;
    const end = start + LONG < text.length ? text.lastIndexOf(" ", start + LONG) : text.length;
    const line = document.createElement("p");
    line.className = "context";
    line.append(start ? "… " : "");
    const whole = new RegExp(`((?:${words.map(_escapeRegExp).join("|")})[\\p{L}\\p{N}]*)`, "giu");
    text.slice(start, end).split(whole).forEach((piece, at) => {
      const shown = at % 2 ? document.createElement("mark") : document.createTextNode(piece);
      if (at % 2) shown.textContent = piece;
      line.append(shown);
    });
    line.append(end < text.length ? " …" : "");
    return line;
  };

  Search.query = (query) => {
    const parsed = Search._parseQuery(query);
    const words = [...new Set([...parsed[1], ...parsed[3]])];
    const every = Search._performSearch(...parsed).reverse(); // Sphinx puts the best last
    const ofReference = ([page]) => page.startsWith(REFERENCE);
    const results = every.filter((one) => !ofReference(one));
    results.push(...every.filter(ofReference).slice(0, MOST_NAMES));
    for (const result of results) {
      const [page, title, anchor] = result;
      const item = Search.output.appendChild(document.createElement("li"));
      const link = item.appendChild(document.createElement("a"));
      link.href = page + DOCUMENTATION_OPTIONS.LINK_SUFFIX + anchor;
      link.innerHTML = title; // a title may hold a formula
      const found = ofReference(result) ? null : best(page, anchor, words) || best(page, "", words);
      if (ofReference(result)) item.append(" in the reference");
      if (found) item.append(excerpt(found, words));
      if (found && found.id && !anchor) link.href += `#${found.id}`;
    }
    _finishSearch(results.length);
  };
}
