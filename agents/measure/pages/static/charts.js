// Draws each .plot of the page with uPlot once it is seen, in the page's own colours, light or dark.
(() => {
  "use strict";
  const HEIGHT = 240;
  const MOST_DOTS = 40;
  const plots = new Map();
  const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
  const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

  const themed = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const written = (chart) => (value) =>
    value == null ? "–" : chart.shares ? `${(100 * value).toFixed(1)} %` : plain.format(value);
  const onAxis = (chart) => (value) => (chart.shares ? `${Math.round(100 * value)} %` : compact.format(value));

  const legend = { markers: { width: 0, fill: (u, series) => u.series[series].stroke(u, series) } };

  function axis(label, values, more) {
    const lines = { stroke: themed("--line"), width: 1 };
    return { label, values, stroke: themed("--muted"), grid: lines, ticks: lines, labelSize: 20, ...more };
  }

  const wideEnough = (u, values) => 18 + 7 * Math.max(0, ...(values || []).map((value) => value.length));

  // Lines of several runs need not have the same x: the legend shows each line's value nearest to the cursor.
  function nearest(u, series, at) {
    const values = u.data[series];
    for (let away = 0; away < values.length; away++) {
      if (values[at - away] != null) return at - away;
      if (values[at + away] != null) return at + away;
    }
    return at;
  }

  function curves(chart) {
    const tables = [], bands = [], tell = written(chart);
    const series = [{ label: chart.x_label, value: (u, x) => (x == null ? "" : compact.format(x)) }];
    for (const line of chart.lines) {
      const own = series.length, banded = line.low !== undefined;
      const value = (u, y, place, at) => {
        if (y == null || at == null) return "";
        if (!banded) return tell(y);
        const [high, low] = [u.data[own + 1][at], u.data[own + 2][at]];
        return chart.stacked ? tell(high - low) : `${tell(y)} (${tell(low)} to ${tell(high)})`;
      };
      const points = { show: line.x.length <= MOST_DOTS && !chart.stacked, size: 5 };
      series.push({ label: line.name, stroke: line.colour, width: 1.8, spanGaps: true, points, value });
      tables.push(banded ? [line.x, chart.stacked ? line.high : line.y, line.high, line.low] : [line.x, line.y]);
      if (!banded) continue;
      const edge = { label: "", class: "edge", width: 0, spanGaps: true, points: { show: false } };
      series.push({ ...edge }, { ...edge });
      bands.push({ series: [own + 1, own + 2], fill: line.colour + (chart.stacked ? "b0" : "30") });
    }
    const range = (u, low, high) => {
      if (chart.shares) return [0, 1];
      if (low == null) return [0, 1];
      const [from, to] = uPlot.rangeNum(chart.from_zero ? Math.min(0, low) : low, high, 0.05, true);
      return [chart.from_zero && low >= 0 ? 0 : from, to];
    };
    // A band is hidden with its line, when that is pressed in the legend.
    const follow = (u, own, change) => {
      if (own == null || change.show === undefined || series[own].class) return;
      for (const edge of [own + 1, own + 2]) if (series[edge]?.class) u.setSeries(edge, { show: change.show });
    };
    return {
      data: uPlot.join(tables), series, bands, hooks: { setSeries: [follow] },
      scales: { x: { time: false }, y: { range } },
      cursor: { dataIdx: nearest, drag: { x: true, y: false } },
      axes: [
        axis(chart.x_label, (u, ticks) => ticks.map((tick) => compact.format(tick)), { space: 60, size: 34 }),
        axis(chart.y_label, (u, ticks) => ticks.map(onAxis(chart)), { size: wideEnough }),
      ],
    };
  }

  function intervals(chart) {
    const last = chart.rows.length - 1, tables = [];
    const series = [{ label: chart.x_label, value: (u, x) => (x == null ? "" : plain.format(x)) }];
    chart.rows.forEach(([name, value, low, high], row) => {
      const xs = [...new Set([low, value, high])].sort((a, b) => a - b);
      tables.push([xs, xs.map(() => last - row)]);
      const points = { show: true, size: 9, fill: chart.colour, filter: (u) => [u.data[0].indexOf(value)] };
      series.push({ label: name, class: "edge", stroke: chart.colour, width: 3, spanGaps: true, points });
    });
    const all = chart.rows.flatMap((row) => row.slice(1)), room = (Math.max(...all) - Math.min(...all) || 1) / 20;
    const short = (name) => (name.length > 22 ? `…${name.slice(-21)}` : name);
    return {
      data: uPlot.join(tables), series, height: 80 + 28 * chart.rows.length,
      scales: { x: { time: false, range: (u, low, high) => [low - room, high + room] }, y: { range: [-0.6, last + 0.6] } },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      axes: [
        axis(chart.x_label, (u, ticks) => ticks.map((tick) => compact.format(tick)), { space: 60, size: 34 }),
        axis(null, (u, rows) => rows.map((row) => short(chart.rows[last - row][0])), {
          size: wideEnough, splits: () => chart.rows.map((_, row) => row), grid: { show: false }, ticks: { show: false },
        }),
      ],
    };
  }

  function draw(place, width) {
    const chart = JSON.parse(place.dataset.chart);
    const { data, height = HEIGHT, ...options } = chart.rows ? intervals(chart) : curves(chart);
    place.style.minHeight = `${height}px`;
    plots.set(place, new uPlot({ width, height, legend, ...options }, data, place));
  }

  // What is folded away has no width; it is drawn when it is unfolded.
  const observer = new ResizeObserver((changes) => {
    for (const { target, contentRect } of changes) {
      const width = Math.floor(contentRect.width), plot = plots.get(target);
      if (!width) continue;
      if (!plot) draw(target, width);
      else if (plot.width !== width) plot.setSize({ width, height: plot.height });
    }
  });
  document.querySelectorAll(".plot").forEach((place) => observer.observe(place));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((plot) => plot.redraw(false, true)));
})();
