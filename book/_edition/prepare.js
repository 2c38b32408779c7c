// From the joined pages of the book to an edition: what only a screen can use goes, folds open, links lead inside.
// `sepnb.companion.editions.pages` calls these functions in the order in which they stand here.
"use strict";
const edition = {
  // `pages` are their names in reading order, each a <section data-page> of this document.
  prepare(pages) {
    const all = document.querySelector("main");
    const drop = "script, style, noscript, button, .headerlink, .sepnb-interactive, .sepnb-filter, .sd-summary-state-marker";
    for (const node of all.querySelectorAll(drop)) {
      const cell = node.closest(".cell");
      node.remove();
      if (cell && !cell.textContent.trim() && !cell.querySelector("img, table")) cell.remove();
    }
    // Of folded code solutions stay, and what it shows. The list of all runs goes; every other fold opens.
    for (const fold of document.querySelectorAll("details.hide")) {
      const bar = fold.querySelector("summary .collapsed")?.textContent.trim();
      if (bar === "Solution") {
        fold.classList.remove("hide");
        fold.querySelector("summary").replaceChildren(bar);
        continue;
      }
      const shown = [...fold.querySelectorAll(".cell_output")].filter((one) => one.querySelector("table, img"));
      const cell = fold.closest(".cell");
      fold.replaceWith(...shown);
      const before = cell?.previousElementSibling; // words that lead to a cell which is not there
      if (cell && /^The next cell writes/.test(before?.textContent.trim() ?? "")) {
        if (before.previousElementSibling?.matches("hr")) before.previousElementSibling.remove();
        before.remove();
      }
      if (cell && !cell.textContent.trim() && !cell.querySelector("img, table")) cell.remove();
    }
    const runs = [...document.querySelectorAll("[data-page='book/provenance'] details")];
    if (runs.length) runs[0].before("The tables of all runs are in the book's web edition.");
    for (const fold of runs) fold.remove();
    for (const fold of document.querySelectorAll("details")) {
      const box = document.createElement("div"), title = document.createElement("p");
      const head = fold.querySelector("summary");
      box.className = "edition-fold";
      title.className = "edition-fold-title";
      title.append(...head.childNodes);
      head.remove();
      box.append(title, ...fold.childNodes);
      if (fold.id) box.id = fold.id;
      for (const name of fold.classList) if (name.startsWith("sepnb-")) box.classList.add(name);
      fold.replaceWith(box);
    }
    // A page links to another by its address; here both are sections of one document.
    const places = new Map(pages.map((page, at) => [page, at]));
    const number = (at) => `p${String(at).padStart(2, "0")}`;
    const sections = [...document.querySelectorAll("section[data-page]")];
    for (const section of sections)
      for (const node of section.querySelectorAll("[id]"))
        if (!node.closest("svg")) node.id = `${number(places.get(section.dataset.page))}-${node.id}`;
    for (const section of sections) {
      const page = section.dataset.page;
      for (const link of section.querySelectorAll("a[href]")) {
        const target = new URL(link.getAttribute("href"), `book:///${page}.html`);
        if (/^https?:/.test(target.protocol)) continue;
        const at = places.get(target.pathname.replace(/^\/+|\.html$/g, ""));
        const id = target.hash ? `${number(at)}-${decodeURIComponent(target.hash.slice(1))}` : number(at);
        if (at === undefined || !document.getElementById(id)) link.replaceWith(...link.childNodes);
        else link.setAttribute("href", `#${id}`);
      }
    }
  },

  // The chapters with their sections: `{id, part, title, sections: [{id, title}]}`.
  contents() {
    const words = (heading) => heading.textContent.replace(/\s+/g, " ").trim();
    return [...document.querySelectorAll("section[data-page]")].map((section) => ({
      id: section.id,
      part: section.dataset.part,
      title: words(section.querySelector("h1")),
      sections: [...section.querySelectorAll("h2")].map((heading) => ({
        id: heading.closest("section[id]").id,
        title: words(heading),
      })),
    }));
  },

  // The list of contents, with a place for the number of a page.
  list(contents) {
    const nav = document.querySelector("nav.edition-contents");
    let part = "";
    for (const chapter of contents) {
      if (chapter.part !== part) {
        const head = document.createElement("p");
        head.className = "edition-part";
        head.textContent = part = chapter.part;
        nav.append(head);
      }
      for (const [one, level] of [[chapter, 1], ...chapter.sections.map((section) => [section, 2])]) {
        const line = document.createElement("p"), link = document.createElement("a"), page = document.createElement("span");
        line.className = `edition-line level-${level}`;
        link.href = `#${one.id}`;
        link.textContent = one.title;
        page.className = "edition-number";
        page.dataset.of = one.id;
        line.append(link, page);
        nav.append(line);
      }
    }
  },

  number(pages) {
    for (const place of document.querySelectorAll(".edition-number")) place.textContent = pages[place.dataset.of] ?? "";
  },

  // What is wider than the page becomes as much smaller; what is not readable then is told.
  fit() {
    const width = document.querySelector("main").clientWidth, small = [];
    for (const box of document.querySelectorAll("main table, main mjx-container[display=true], main svg, main img")) {
      const wide = Math.max(box.scrollWidth || 0, box.getBoundingClientRect().width);
      const room = Math.min(width, box.parentElement.clientWidth || width);
      if (wide <= room + 1) continue;
      const zoom = room / wide;
      box.style.zoom = zoom;
      if (zoom < 0.55) small.push(`${box.closest("section[data-page]").dataset.page}: ${box.tagName} at ${zoom.toFixed(2)}`);
    }
    return small;
  },
};
