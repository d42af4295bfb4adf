"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

  // What only works with a script is hidden without one.
  root.classList.add("live");
  for (const e of all(".tools[hidden], #theme")) e.hidden = false;

  // Theme: that of the system, unless one is chosen. A page opened as a file may have no storage.
  const store = {
    get() { try { return localStorage.getItem("olmkit-theme") } catch { return null } },
    set(v) { try { localStorage.setItem("olmkit-theme", v) } catch { /* not kept */ } },
  };
  const themes = ["auto", "light", "dark"];
  const themeButton = document.getElementById("theme");
  const setTheme = (t) => {
    if (t === "auto") delete root.dataset.theme; else root.dataset.theme = t;
    themeButton.textContent = "Theme: " + t;
  };
  let theme = themes.includes(store.get()) ? store.get() : "auto";
  setTheme(theme);
  themeButton.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    store.set(theme);
    setTheme(theme);
  });

  // Each graph is moved and zoomed by its view box.
  const graphs = new Map();
  for (const channel of all(".channel")) graphs.set(channel.id, graph(channel));

  function graph(channel) {
    const view = channel.querySelector(".view"), svg = view.querySelector("svg"), world = svg.querySelector(".world");
    const width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;
    let x = 0, y = 0, scale = 1;
    const draw = () => svg.setAttribute("viewBox", `${x} ${y} ${view.clientWidth / scale} ${view.clientHeight / scale}`);
    // At least a corner of the graph stays in sight.
    const moveTo = (nx, ny) => {
      const w = view.clientWidth / scale, h = view.clientHeight / scale;
      x = w >= width ? (width - w) / 2 : clamp(nx, -w / 3, width - w * 2 / 3);
      y = h >= height ? (height - h) / 2 : clamp(ny, -h / 3, height - h * 2 / 3);
      draw();
    };
    const zoom = (factor, px = view.clientWidth / 2, py = view.clientHeight / 2) => {
      const next = clamp(scale * factor, 0.08, 4);
      const ax = x + px / scale, ay = y + py / scale;
      scale = next;
      moveTo(ax - px / scale, ay - py / scale);
    };
    const fit = () => {
      scale = clamp(Math.min(view.clientWidth / width, view.clientHeight / height), 0.08, 1.25);
      moveTo(0, 0);
    };
    // The newest releases are what one comes for: where not all can be read at once, these are in sight.
    const start = () => {
      view.style.height = clamp(height + 24, 120, Math.max(260, innerHeight * 0.6)) + "px";
      scale = clamp(Math.min(view.clientWidth / width, view.clientHeight / height), 0.75, 1.25);
      moveTo(width, 0);
      if (view.clientWidth / scale < width) { x = width - view.clientWidth / scale; draw(); }
    };
    if (view.clientWidth) start();

    let grip = null, moved = false;
    view.addEventListener("pointerdown", (e) => {
      if (e.button !== 0) return;
      grip = { x: e.clientX, y: e.clientY, fromX: x, fromY: y };
      moved = false;
    });
    view.addEventListener("pointermove", (e) => {
      if (!grip) return;
      const dx = e.clientX - grip.x, dy = e.clientY - grip.y;
      if (!moved && Math.hypot(dx, dy) < 4) return;
      if (!moved) view.setPointerCapture(e.pointerId);
      moved = true;
      view.classList.add("drag");
      moveTo(grip.fromX - dx / scale, grip.fromY - dy / scale);
    });
    const release = () => { grip = null; view.classList.remove("drag") };
    view.addEventListener("pointerup", release);
    view.addEventListener("pointercancel", release);
    view.addEventListener("click", (e) => { if (moved) e.preventDefault(); moved = false; }, true);
    view.addEventListener("dragstart", (e) => e.preventDefault());
    view.addEventListener("wheel", (e) => {
      const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY);
      if (!e.ctrlKey && !e.metaKey && !e.shiftKey && !sideways) return; // the page scrolls
      e.preventDefault();
      const box = view.getBoundingClientRect();
      if (e.ctrlKey || e.metaKey) zoom(Math.exp(-e.deltaY / 300), e.clientX - box.left, e.clientY - box.top);
      else moveTo(x + (e.deltaX || e.deltaY) / scale, y);
    }, { passive: false });
    const keys = {
      ArrowLeft: () => moveTo(x - 60 / scale, y), ArrowRight: () => moveTo(x + 60 / scale, y),
      ArrowUp: () => moveTo(x, y - 40 / scale), ArrowDown: () => moveTo(x, y + 40 / scale),
      Home: () => moveTo(-width, y), End: () => moveTo(width, y),
      "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), "0": fit,
    };
    view.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
      e.preventDefault();
      keys[e.key]();
    });

    // What leads to and from the entry under the pointer stands out.
    for (const node of all(".node", svg)) {
      const near = (on) => {
        world.classList.toggle("near", on);
        for (const edge of all(".edge", svg)) edge.classList.toggle("on", on && (edge.dataset.from === node.dataset.name || edge.dataset.to === node.dataset.name));
      };
      node.addEventListener("mouseenter", () => near(true));
      node.addEventListener("mouseleave", () => near(false));
    }
    addEventListener("resize", () => { if (view.clientWidth) moveTo(x, y) });
    return { channel, start, zoom, fit, print: () => svg.setAttribute("viewBox", `0 0 ${width} ${height}`), draw };
  }

  // One channel is shown at a time.
  const choice = document.getElementById("channel");
  const show = (id) => {
    for (const [name, g] of graphs) {
      const hidden = g.channel.hidden;
      g.channel.hidden = name !== id;
      if (hidden && name === id) g.start();
    }
    if (choice) choice.value = id;
  };
  if (choice) {
    show(choice.value);
    choice.addEventListener("change", () => show(choice.value));
  }
  const shown = () => [...graphs.values()].find((g) => !g.channel.hidden);
  for (const b of all("[data-zoom]")) {
    b.addEventListener("click", () => {
      const g = shown();
      if (b.dataset.zoom === "fit") g.fit(); else g.zoom(b.dataset.zoom === "in" ? 1.25 : 0.8);
    });
  }

  for (const b of all("[data-all]")) {
    b.addEventListener("click", () => { for (const d of all("details.hop")) d.open = b.dataset.all === "open" });
  }

  // A fragment names a hop, a code or an entry: what hides it is opened.
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const channel = target.closest(".channel");
    if (channel && channel.hidden) show(channel.id);
    for (let e = target; e; e = e.parentElement) {
      if (e.tagName === "DETAILS") e.open = true;
      if (e.hidden) e.hidden = false;
    }
    target.scrollIntoView();
    target.classList.remove("hit-target");
    void target.offsetWidth; // so that the animation starts again
    target.classList.add("hit-target");
    const focus = target.tagName === "DETAILS" ? target.querySelector("summary") : target;
    if (focus !== document.getElementById("main")) {
      if (!focus.matches("a, summary, [tabindex]")) focus.tabIndex = -1;
      focus.focus({ preventScroll: true });
    }
  };
  addEventListener("hashchange", follow);
  document.addEventListener("click", (e) => {
    const a = e.target.closest && e.target.closest("a");
    const href = a && a.getAttribute("href");
    if (!e.defaultPrevented && href && href === location.hash) follow(); // the fragment does not change
  });

  // Findings by severity and by words.
  const search = document.getElementById("search"), found = document.getElementById("found");
  const buttons = all("button[data-severity]");
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const off = new Set(buttons.filter((b) => b.getAttribute("aria-pressed") === "false").map((b) => b.dataset.severity));
    let n = 0;
    for (const group of all(".group")) {
      const head = [...group.children].filter((e) => !e.matches("ul, details")).map((e) => e.textContent).join(" ").toLowerCase();
      let some = false;
      for (const item of all(".finding", group)) {
        const text = head + " " + item.textContent.toLowerCase();
        item.hidden = off.has(["error", "warning", "info"].find((s) => item.classList.contains(s))) || !words.every((w) => text.includes(w));
        if (!item.hidden) { some = true; n++; }
      }
      group.hidden = !some;
      const folded = group.querySelector("details");
      if (folded && words.length) folded.open = some;
    }
    found.textContent = words.length || off.size ? `${n} shown` : "";
  };
  if (search) {
    search.addEventListener("input", filter);
    for (const b of buttons) {
      b.addEventListener("click", () => {
        b.setAttribute("aria-pressed", b.getAttribute("aria-pressed") === "false");
        filter();
      });
    }
  }

  // On paper everything is open.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    for (const d of closed) d.open = true;
    for (const g of graphs.values()) g.print();
  });
  addEventListener("afterprint", () => {
    for (const d of closed) d.open = false;
    for (const g of graphs.values()) g.draw();
  });

  if (location.hash) {
    follow();
    addEventListener("load", () => requestAnimationFrame(follow)); // the browser has its own idea where to go, and takes the focus away
  }
  root.dataset.ready = "yes";
  performance.mark("olmkit-ready");
})();
