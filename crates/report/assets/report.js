// Draws the charts of a report from the data that the page carries. Every name in the data is a user's: it reaches the
// page only as text, never as markup.
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const COLOURS = 8;
  const HEIGHT = { timeline: 220, distribution: 320 };
  const LEAST = 0.01; // what a logarithmic axis shows instead of zero

  // ---- small helpers ----
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  }
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const lawColour = (law) => colour("--law" + (law % COLOURS));
  const lawDash = (law) => [[], [6, 3], [2, 3]][Math.floor(law / COLOURS) % 3];
  function short(value) {
    if (value == null) return "–";
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size >= 1000) return Math.round(value).toLocaleString("en-GB").replace(/,/g, "\u202f");
    return String(Number(value.toPrecision(3)));
  }

  // ---- theme: the system's unless chosen here ----
  const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const button = document.getElementById("theme");
  function applyTheme(forced) {
    const theme = forced || chosen || (darkSystem.matches ? "dark" : "light");
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light theme" : "Dark theme";
    for (const chart of allCharts()) chart.redraw(false, true);
  }
  let timeline = [];
  let distribution = null;
  function allCharts() {
    return distribution ? timeline.concat([distribution]) : timeline;
  }
  button.hidden = false;
  button.addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    applyTheme();
  });
  darkSystem.addEventListener("change", () => applyTheme());
  // Paper is white, and narrower than most windows.
  const PAPER = { width: 680, height: 160 };
  function resize(sizeFor) {
    for (const chart of allCharts()) {
      const size = sizeFor(chart);
      if (size.width !== chart.width || size.height !== chart.height) chart.setSize(size);
    }
  }
  const fitWindow = () => resize((chart) => ({
    width: widthOf(chart.root.parentElement),
    height: chart === distribution ? HEIGHT.distribution : HEIGHT.timeline,
  }));
  window.addEventListener("beforeprint", () => { applyTheme("light"); resize(() => PAPER); });
  window.addEventListener("afterprint", () => { applyTheme(); fitWindow(); });

  // ---- what is shown ----
  const hidden = new Set();
  const state = { entity: 0, seed: null, smooth: 1, log: true, tail: false };
  const seeds = [...new Set(data.runs.map((run) => run.seed))];
  state.seed = seeds[0];
  const wanted = Math.round(0.1 / data.bin_s);
  state.smooth = Math.max(1, wanted);
  let zoom = [0, data.end_s];

  // Means of neighbouring bins, and over the seeds if more than one is asked for.
  function valuesOf(chart, law) {
    const runs = data.runs.filter((run) => run.law === law && (state.seed === null || run.seed === state.seed));
    const series = runs.map((run) => (run.series[chart.id] || [])[state.entity]).filter(Boolean);
    if (series.length === 0) return null;
    const bins = Math.max(...series.map((one) => one.length));
    const values = [];
    for (let from = 0; from < bins; from += state.smooth) {
      let sum = 0, count = 0;
      for (const one of series) {
        for (let bin = from; bin < Math.min(from + state.smooth, one.length); bin++) {
          if (one[bin] !== null) { sum += one[bin]; count++; }
        }
      }
      values.push(count ? sum / count : null);
    }
    return values;
  }

  function times(length) {
    const width = data.bin_s * state.smooth;
    return Array.from({ length }, (_, i) => Math.min((i + 0.5) * width, data.end_s));
  }

  // ---- parts that all charts share ----
  function axes(xLabel, x, y) {
    const common = {
      stroke: () => colour("--muted"),
      grid: { stroke: () => colour("--grid"), width: 1 },
      ticks: { stroke: () => colour("--grid"), width: 1, size: 5 },
      font: "12px system-ui, sans-serif",
    };
    return [
      Object.assign({}, common, { label: xLabel, labelSize: 18, labelFont: "12px system-ui, sans-serif", size: 30 }, x),
      Object.assign({}, common, { size: 52, values: (u, splits) => splits.map((v) => (v == null ? "" : short(v))) }, y),
    ];
  }

  // 1, 2, 5, 10 … as far as they fit; only the powers of ten if there would be too many.
  function logSplits(u, axis, min, max) {
    const all = [], powers = [];
    for (let e = Math.floor(Math.log10(min)); e <= Math.ceil(Math.log10(max)); e++) {
      for (const lead of [1, 2, 5]) {
        const value = Number((lead * 10 ** e).toPrecision(3));
        if (value < min || value > max) continue;
        all.push(value);
        if (lead === 1) powers.push(value);
      }
    }
    return all.length > 9 && powers.length > 1 ? powers : all;
  }

  const keepAll = (u, splits) => splits;
  const linear = { range: (u, min, max) => [0, max > 0 ? max * 1.06 : 1] };
  function logarithmic(least) {
    return {
      distr: 3,
      range: (u, min, max) => (min == null ? [least, 1] : [Math.max(min * 0.8, least), Math.max(max, least) * 1.25]),
    };
  }

  function lawSeries(law, value) {
    return {
      label: data.laws[law],
      stroke: () => lawColour(law),
      width: 1.6,
      dash: lawDash(law),
      spanGaps: false,
      points: { show: false },
      show: !hidden.has(law),
      value: (u, v) => (v == null ? "–" : value(v)),
    };
  }

  // The warm-up is drawn but not measured.
  function shadeWarmUp(u) {
    const to = Math.min(u.valToPos(data.warm_up_s, "x", true), u.bbox.left + u.bbox.width);
    if (!(to > u.bbox.left)) return;
    u.ctx.save();
    u.ctx.fillStyle = colour("--warm");
    u.ctx.fillRect(u.bbox.left, u.bbox.top, to - u.bbox.left, u.bbox.height);
    u.ctx.restore();
  }

  const widthOf = (element) => Math.max(280, element.clientWidth);

  // ---- over time ----
  function setZoom(from, to) {
    const span = Math.min(Math.max(to - from, 2 * data.bin_s), data.end_s);
    from = Math.min(Math.max(from, 0), data.end_s - span);
    zoom = [from, from + span];
    for (const chart of timeline) {
      const { min, max } = chart.scales.x;
      if (min !== zoom[0] || max !== zoom[1]) chart.setScale("x", { min: zoom[0], max: zoom[1] });
    }
  }

  function drawTimeline() {
    timeline.forEach((chart) => chart.destroy());
    timeline = [];
    const place = document.getElementById("charts");
    place.replaceChildren();
    const sync = uPlot.sync("timeline");
    for (const chart of data.charts) {
      const laws = data.laws.map((_, law) => valuesOf(chart, law));
      const length = Math.max(0, ...laws.map((values) => (values ? values.length : 0)));
      if (length === 0) continue;
      const log = chart.wide && state.log;
      const ys = laws.map((values) => {
        if (!values) return new Array(length).fill(null);
        return log ? values.map((v) => (v === null ? null : Math.max(v, LEAST))) : values;
      });
      const plot = make("div", { class: "plot", role: "img",
        "aria-label": chart.title + " in " + chart.unit + " over time, one line a law. The table above has the figures." });
      place.append(make("figure", {},
        make("figcaption", {}, chart.title, make("small", {}, chart.unit + (log ? ", logarithmic" : ""))), plot));
      const options = {
        width: widthOf(plot),
        height: HEIGHT.timeline,
        scales: { x: { time: false, range: (u, min, max) => (min == null ? zoom.slice() : [min, max]) },
          y: log ? logarithmic(LEAST) : linear },
        axes: axes(null, { size: 26 }, log ? { splits: logSplits, filter: keepAll } : {}),
        series: [{ label: "Time", value: (u, v) => (v == null ? "–" : v.toFixed(2) + " s") }]
          .concat(data.laws.map((_, law) => lawSeries(law, (v) => short(v) + " " + chart.unit))),
        cursor: {
          drag: { x: true, y: false },
          points: { size: 7 },
          // Zooming is passed on by setZoom: only the position travels this way.
          sync: { key: sync.key, scales: ["x", null], setSeries: false,
            filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
          bind: { dblclick: () => () => { setZoom(0, data.end_s); return null; } },
        },
        legend: { live: true, markers: { width: 0, fill: (u, i) => (i > 0 ? lawColour(i - 1) : "transparent") } },
        hooks: {
          drawClear: [shadeWarmUp],
          setScale: [(u, key) => {
            const { min, max } = u.scales.x;
            if (key === "x" && timeline.includes(u) && (min !== zoom[0] || max !== zoom[1])) setZoom(min, max);
          }],
        },
      };
      const drawn = new uPlot(options, [times(length), ...ys], plot);
      drawn.setScale("x", { min: zoom[0], max: zoom[1] });
      timeline.push(drawn);
    }
    if (timeline.length === 0) place.append(make("p", { class: "note" }, "No time series were recorded for this choice."));
  }

  // ---- distribution of delays ----
  function drawDistribution() {
    if (distribution) { distribution.destroy(); distribution = null; }
    const place = document.getElementById("cdf");
    place.replaceChildren();
    if (!data.cdf) {
      place.append(make("p", { class: "note" }, "No packet crossed the hop in the measured window."));
      return;
    }
    const least = 1e-5;
    const ys = data.laws.map((_, law) => {
      const above = data.cdf.above[law][state.entity];
      if (!above) return data.cdf.x_ms.map(() => null);
      return above.map((share) => (state.tail ? (share > 0 ? Math.max(share, least) : null) : 1 - share));
    });
    const percent = (share) => {
      const p = 100 * share;
      return Number(p > 50 && p < 100 ? (100 - Number((100 - p).toPrecision(2))).toFixed(4) : p.toPrecision(3)) + " %";
    };
    const plot = make("div", { class: "plot", role: "img",
      "aria-label": "Share of packets by their delay over the hop, one line a law. The table above has mean, p95 and p99." });
    place.append(make("figure", {},
      make("figcaption", {}, state.tail ? "Share of packets that took longer" : "Share of packets that took at most so long",
        make("small", {}, "all seeds together" + (state.tail ? ", logarithmic" : ""))), plot));
    const options = {
      width: widthOf(plot),
      height: HEIGHT.distribution,
      scales: {
        x: state.log ? { time: false, distr: 3, range: (u, min, max) => [min, max] } : { time: false },
        y: state.tail ? { distr: 3, range: (u, min) => [Math.max(min || least, least), 1] } : { range: () => [0, 1] },
      },
      axes: axes("Delay over the hop, ms" + (state.log ? " (logarithmic)" : ""),
        Object.assign({ size: 30, values: (u, splits) => splits.map((v) => (v == null ? "" : short(v))) },
          state.log ? { splits: logSplits, filter: keepAll } : {}),
        { size: 62, values: (u, splits) => splits.map((v) => (v == null ? "" : percent(v))) }),
      series: [{ label: "Delay", value: (u, v) => (v == null ? "–" : short(v) + " ms") }]
        .concat(data.laws.map((_, law) => lawSeries(law, percent))),
      cursor: { drag: { x: true, y: false }, points: { size: 7 } },
      legend: { live: true, markers: { width: 0, fill: (u, i) => (i > 0 ? lawColour(i - 1) : "transparent") } },
    };
    distribution = new uPlot(options, [data.cdf.x_ms, ...ys], plot);
  }

  // ---- controls ----
  function choice(label, options, onchange) {
    const select = make("select", { onchange: () => onchange(options[select.selectedIndex][1]) },
      ...options.map(([text, , selected]) => make("option", { selected: Boolean(selected) }, text)));
    return make("label", {}, label, select);
  }
  function tick(label, on, onchange) {
    const box = make("input", { type: "checkbox", checked: on, onchange: () => onchange(box.checked) });
    return make("label", {}, box, label);
  }
  function chips() {
    const group = make("span", { class: "group", role: "group", "aria-label": "Laws shown" });
    data.laws.forEach((name, law) => {
      const chip = make("button", { type: "button", class: "chip", "aria-pressed": "true" },
        make("span", { class: "dot law" + (law % COLOURS) }), name);
      chip.addEventListener("click", () => {
        if (!hidden.delete(law)) hidden.add(law);
        chip.setAttribute("aria-pressed", String(!hidden.has(law)));
        for (const chart of allCharts()) chart.setSeries(law + 1, { show: !hidden.has(law) });
      });
      group.append(chip);
    });
    return group;
  }
  function zoomButton(sign, title, change) {
    return make("button", { type: "button", title, "aria-label": title, onclick: () => {
      const [from, to] = zoom;
      setZoom(...change(from, to, to - from));
    } }, sign);
  }

  const controls = document.getElementById("controls");
  controls.append(
    chips(),
    choice("Station", data.entities.map((name, i) => [name, i, i === 0]), (entity) => {
      state.entity = entity; drawTimeline(); drawDistribution();
    }),
    choice("Seed", seeds.map((seed) => [seed, seed]).concat(seeds.length > 1 ? [["mean of all", null]] : []), (seed) => {
      state.seed = seed; drawTimeline();
    }),
    choice("Averaged over", [0.02, 0.1, 0.5, 2].map((s) => Math.max(1, Math.round(s / data.bin_s)))
      .filter((bins, i, all) => all.indexOf(bins) === i)
      .map((bins) => [short(bins * data.bin_s * 1000) + " ms", bins, bins === state.smooth]), (bins) => {
      state.smooth = bins; drawTimeline();
    }),
    tick("logarithmic delays and windows", state.log, (on) => { state.log = on; drawTimeline(); drawDistribution(); }),
    make("span", { class: "group zoom", role: "group", "aria-label": "Zoom in time" },
      zoomButton("◀", "earlier", (from, to, span) => [from - span / 4, to - span / 4]),
      zoomButton("▶", "later", (from, to, span) => [from + span / 4, to + span / 4]),
      zoomButton("+", "zoom in", (from, to, span) => [from + span / 4, to - span / 4]),
      zoomButton("−", "zoom out", (from, to, span) => [from - span / 2, to + span / 2]),
      zoomButton("all", "show all of the run", () => [0, data.end_s])));
  controls.hidden = false;
  controls.after(make("p", { class: "note screen" },
    "Drag across a chart to zoom all of them, double-click to see everything again. Time in seconds."));
  const below = document.getElementById("cdf-controls");
  below.append(tick("show the tail: share above, logarithmic", state.tail, (on) => { state.tail = on; drawDistribution(); }));
  below.hidden = false;

  applyTheme();
  drawTimeline();
  drawDistribution();
  let pending = 0;
  new ResizeObserver(() => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(fitWindow);
  }).observe(document.body);
})();
