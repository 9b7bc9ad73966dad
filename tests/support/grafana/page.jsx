// Draws a dashboard in a browser from panels, with Grafana's published components: big values, tables, time series.
// Bar charts and state timelines are not published; they are sketched from the same frames, in their colours.
// `window.draw(board)` takes {title, theme, width, from, to, panels: [{panel, answers}]}, and returns what a person sees.
const React = require('react');
const { createRoot } = require('react-dom/client');
const data = require('@grafana/data');
const ui = require('@grafana/ui');

const { framesFor, describe } = require('./frames.cjs')(data);

const ROW = 30;
const GAP = 8;
const COLUMNS = 24;
const NARROW = 768;
const DEFAULTS = {
  drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, fillOpacity: 0, gradientMode: 'none', spanNulls: false,
  showPoints: 'auto', pointSize: 5, axisPlacement: 'auto', axisLabel: '', axisColorMode: 'text', barAlignment: 0,
  scaleDistribution: { type: 'linear' }, stacking: { mode: 'none', group: 'A' }, thresholdsStyle: { mode: 'off' },
  hideFrom: { legend: false, tooltip: false, viz: false }, barWidthFactor: 0.6, axisCenteredZero: false,
};

function Stat({ question, frames, width, height, theme }) {
  const [value] = data.getFieldDisplayValues({
    fieldConfig: question.panel.fieldConfig, reduceOptions: question.panel.options.reduceOptions,
    replaceVariables: (text) => text, theme, data: frames, sparkline: false, timeZone: 'utc',
  });
  const { colorMode, graphMode } = question.panel.options;
  return (
    <ui.BigValue theme={theme} width={width} height={height} value={value.display} count={1}
      colorMode={colorMode} graphMode={graphMode} justifyMode="auto" textMode="auto" />
  );
}

function Sheet({ question, frames, width, height }) {
  const noHeader = question.panel.options?.showHeader === false;
  return <ui.Table data={frames[0]} width={width} height={height} noHeader={noHeader} />;
}

function Lines({ question, frames, width, height, range }) {
  for (const frame of frames) {
    for (const field of frame.fields) {
      const own = field.config.custom;
      field.config = { ...field.config, custom: { ...DEFAULTS, ...question.panel.fieldConfig.defaults.custom, ...own } };
    }
  }
  return (
    <ui.TimeSeries frames={frames} width={width} height={height} timeRange={range} timeZone="utc" structureRev={1}
      legend={{ calcs: [], ...question.panel.options.legend }} options={{ legend: question.panel.options.legend }} />
  );
}

function Bars({ frames, width, height, theme }) {
  const [frame] = frames;
  const names = frame.fields.find((field) => field.type === data.FieldType.string);
  const series = frame.fields.filter((field) => field.type === data.FieldType.number);
  const known = series.flatMap((field) => [...field.values]).filter(Number.isFinite);
  const logarithmic = series[0].config.custom?.scaleDistribution?.type === 'log';
  const scaled = (value) => (logarithmic ? Math.log10(Math.max(value ?? 1, 1)) : value ?? 0);
  const most = scaled(Math.max(...known, 0)) || 1;
  const left = 56, below = 44, high = height - below - 8, wide = (width - left) / frame.length;
  const bar = (wide * 0.7) / series.length;
  const colour = (field) => data.getFieldSeriesColor(field, theme).color;
  const style = { fill: theme.colors.text.secondary, fontSize: 12 };
  return (
    <svg width={width} height={height}>
      {[0, 0.25, 0.5, 0.75, 1].map((share) => (
        <g key={share} transform={`translate(0 ${8 + high * (1 - share)})`}>
          <line x1={left} x2={width} stroke={theme.colors.border.weak} />
          <text x={left - 6} y={4} textAnchor="end" style={style}>
            {data.formattedValueToString(series[0].display(logarithmic ? 10 ** (share * most) : share * most))}
          </text>
        </g>
      ))}
      {[...names.values].map((name, at) => (
        <g key={at} transform={`translate(${left + at * wide} 0)`}>
          {series.map((field, number) => {
            const part = (high * scaled(field.values[at])) / most;
            return <rect key={number} x={wide * 0.15 + number * bar} y={8 + high - part} width={bar * 0.92} height={part} fill={colour(field)} />;
          })}
          <text x={wide / 2} y={high + 24} textAnchor="middle" style={style}>{name}</text>
        </g>
      ))}
      {series.map((field, number) => (
        <g key={number} transform={`translate(${left + (number * (width - left)) / series.length} ${height - 8})`}>
          <rect y={-9} width={10} height={10} fill={colour(field)} />
          <text x={16} style={style}>{data.getFieldDisplayName(field, frame, frames)}</text>
        </g>
      ))}
    </svg>
  );
}

function States({ frames, width, height, theme, range }) {
  const rows = frames.flatMap((frame) => frame.fields
    .filter((field) => field.type === data.FieldType.number)
    .map((field) => ({ field, times: frame.fields.find((other) => other.type === data.FieldType.time).values, frame })));
  const longest = Math.max(...rows.map(({ field, frame }) => data.getFieldDisplayName(field, frame, frames).length));
  const left = Math.min(Math.max(180, 6.5 * longest + 16), width / 2);
  const below = 20, high = (height - below) / rows.length;
  const [from, to] = [range.from.valueOf(), range.to.valueOf()];
  const place = (time) => left + ((Math.min(Math.max(time, from), to) - from) / (to - from)) * (width - left);
  const style = { fill: theme.colors.text.primary, fontSize: 12 };
  return (
    <svg width={width} height={height}>
      {rows.map(({ field, times, frame }, row) => (
        <g key={row} transform={`translate(0 ${row * high})`}>
          <text x={left - 8} y={high / 2 + 4} textAnchor="end" style={style}>{data.getFieldDisplayName(field, frame, frames)}</text>
          {[...field.values].map((value, at) => (value === null ? null : (
            <rect key={at} x={place(times[at])} y={2} height={high - 4} fill={field.display(value).color}
              width={Math.max(place(times[at + 1] ?? times[at]) - place(times[at]), 1)} />
          )))}
        </g>
      ))}
      {[from, (from + to) / 2, to].map((time, at) => (
        <text key={at} x={place(time)} y={height - 4} style={style} textAnchor={['start', 'middle', 'end'][at]}>
          {data.dateTimeFormat(time, { format: 'D MMM HH:mm', timeZone: 'utc' })}
        </text>
      ))}
    </svg>
  );
}

const DRAWN = { stat: Stat, table: Sheet, timeseries: Lines, barchart: Bars, 'state-timeline': States };

function Panel({ question, frames, board, theme, range, x, y, width, height }) {
  const { panel } = question;
  const style = { position: 'absolute', left: x, top: y, width, height };
  if (panel.type === 'row') {
    const sign = panel.collapsed ? '›' : '⌄';
    return <div style={{ ...style, paddingTop: 6, fontSize: 16 }}>{sign} {panel.title}</div>;
  }
  if (panel.type === 'text') {
    const html = data.renderTextPanelMarkdown(panel.options.content);
    return <div className="words" style={style}><h6>{panel.title}</h6><div dangerouslySetInnerHTML={{ __html: html }} /></div>;
  }
  const Drawing = DRAWN[panel.type];
  const empty = !frames.some((frame) => frame.length > 0);
  return (
    <div style={style} data-panel={panel.title}>
      <ui.PanelChrome title={panel.title} width={width} height={height}>
        {(inner, outer) => {
          if (empty) return <div className="empty">{panel.fieldConfig.defaults.noValue}</div>;
          return <Drawing {...{ question, frames, theme, range }} width={inner} height={outer} />;
        }}
      </ui.PanelChrome>
    </div>
  );
}

window.draw = async (board) => {
  const theme = data.createTheme({ colors: { mode: board.theme } });
  const range = { from: data.dateTime(board.from), to: data.dateTime(board.to) };
  range.raw = { from: range.from, to: range.to };
  const column = (board.width - GAP) / COLUMNS;
  const items = [];
  const told = {};
  let below = 48; // on a narrow screen, Grafana gives each panel the whole width
  const order = ({ panel: a }, { panel: b }) => a.gridPos.y - b.gridPos.y || a.gridPos.x - b.gridPos.x;
  for (const question of [...board.panels].sort(order)) {
    const { x, y, w, h } = question.panel.gridPos;
    const frames = question.panel.targets ? await framesFor(question, theme) : [];
    told[question.panel.title] = describe(frames, theme);
    const height = h * (ROW + GAP) - GAP;
    items.push(board.width < NARROW
      ? { question, frames, x: GAP, y: below, width: board.width - 2 * GAP, height }
      : { question, frames, x: GAP + x * column, y: 48 + y * (ROW + GAP), width: w * column - GAP, height });
    below += height + GAP;
  }
  document.body.style.cssText =
    `margin:0;background:${theme.colors.background.canvas};color:${theme.colors.text.primary};font:14px Inter,Helvetica,sans-serif`;
  const root = document.getElementById('root');
  root.style.cssText = `position:relative;height:${Math.max(...items.map((item) => item.y + item.height)) + GAP}px`;
  createRoot(root).render(
    <data.ThemeContext.Provider value={theme}>
      {ui.GlobalStyles && <ui.GlobalStyles />}
      <div style={{ padding: '12px 8px', fontSize: 20 }}>{board.title}</div>
      {items.map((item, at) => <Panel key={at} {...item} board={board} theme={theme} range={range} />)}
    </data.ThemeContext.Provider>
  );
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const width = (element) => element?.getBoundingClientRect().width ?? 0;
  return Object.fromEntries([...document.querySelectorAll('[data-panel]')].map((each) => {
    const headings = [...each.querySelectorAll('[role=columnheader]')];
    const edge = each.getBoundingClientRect().right + 1;
    const chart = each.querySelector('.u-over');
    return [each.dataset.panel, {
      text: each.innerText,
      cut: headings.filter((one) => one.getBoundingClientRect().right > edge
        || [...one.querySelectorAll('*')].some((part) => part.scrollWidth > part.clientWidth + 1)).map((one) => one.innerText),
      chart: chart ? width(chart) : null,
    }];
  }));
};
