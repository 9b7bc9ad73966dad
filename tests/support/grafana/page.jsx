// Draws a dashboard in a browser from panels, with Grafana's published components: big values, tables, time series.
// `window.draw(board)` takes {title, theme, width, from, to, panels: [{panel, answers}]}, and returns what a person sees.
const React = require('react');
const { createRoot } = require('react-dom/client');
const data = require('@grafana/data');
const ui = require('@grafana/ui');

const { framesFor, describe } = require('./frames.cjs')(data);

const ROW = 30;
const GAP = 8;
const COLUMNS = 24;
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

const DRAWN = { stat: Stat, table: Sheet, timeseries: Lines };

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
          if (!Drawing) return <div className="empty">({panel.type}: not drawn here)</div>;
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
  for (const question of board.panels) {
    const { x, y, w, h } = question.panel.gridPos;
    const frames = question.panel.targets ? await framesFor(question, theme) : [];
    told[question.panel.title] = describe(frames, theme);
    items.push({
      question, frames, x: GAP + x * column, y: 48 + y * (ROW + GAP), width: w * column - GAP, height: h * (ROW + GAP) - GAP,
    });
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
