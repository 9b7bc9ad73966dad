// What Grafana's front end does between an answer of the store and a panel: answers become frames, and the panel's own
// transformations and field options are applied by Grafana's published package, which is handed in.
'use strict';

module.exports = function reader(data) {
  const { FieldType } = data;

  data.standardTransformersRegistry.setInit(() =>
    [...new Map(Object.values(data.standardTransformers).map((one) => [one.id, one])).values()].map((one) => ({
      id: one.id, name: one.name, transformation: one, imageDark: '', imageLight: '', editor: () => null,
    })));

  const identity = data.identityOverrideProcessor;
  const PROCESSED = {
    unit: data.unitOverrideProcessor, min: data.numberOverrideProcessor, max: data.numberOverrideProcessor,
    decimals: data.numberOverrideProcessor, displayName: data.displayNameOverrideProcessor,
    noValue: data.displayNameOverrideProcessor, thresholds: data.thresholdsOverrideProcessor,
    mappings: data.valueMappingsOverrideProcessor, color: identity, links: identity,
  };
  const CUSTOM = ['cellOptions', 'hidden', 'hideFrom', 'lineWidth', 'lineStyle', 'drawStyle', 'showPoints', 'pointSize', 'decimals', 'fillBelowTo', 'fillOpacity', 'minWidth'];
  const item = (id, location, process, isCustom) => ({
    id, path: location, name: id, process, isCustom, shouldApply: () => true, getItemsCount: () => 1,
    editor: () => null, override: () => null, settings: {}, hideFromOverrides: false, hideFromDefaults: false,
  });
  const registry = new data.FieldConfigOptionsRegistry(() => [
    ...Object.entries(PROCESSED).map(([id, process]) => item(id, id, process, false)),
    ...CUSTOM.map((id) => item(`custom.${id}`, id, identity, true)),
  ]);

  const named = (legend, labels) => legend.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, name) => labels[name] ?? name);
  const numbers = (values) => values.map((value) => (value === 'NaN' ? null : Number(value)));

  // One frame per series: the format "time_series", and that of heat maps before their buckets are put together.
  function asSeries(target, series) {
    return series.map((one) => {
      const points = one.values || [one.value];
      return data.toDataFrame({
        refId: target.refId,
        fields: [
          { name: 'Time', type: FieldType.time, values: points.map(([at]) => at * 1000) },
          {
            name: 'Value', type: FieldType.number, labels: one.metric, values: numbers(points.map(([, value]) => value)),
            config: { displayNameFromDS: named(target.legendFormat, one.metric) },
          },
        ],
      });
    });
  }

  // One frame per query, with a column per label: the format "table". Several queries number their values.
  function asTable(target, series, several) {
    const labels = [...new Set(series.flatMap((one) => Object.keys(one.metric)))].sort();
    const rows = series.flatMap((one) => (one.values || [one.value]).map((point) => [one.metric, point]));
    return data.toDataFrame({
      refId: target.refId,
      fields: [
        { name: 'Time', type: FieldType.time, values: rows.map(([, [at]]) => at * 1000) },
        ...labels.map((name) => ({ name, type: FieldType.string, values: rows.map(([metric]) => metric[name] ?? '') })),
        {
          name: several ? `Value #${target.refId}` : 'Value', type: FieldType.number,
          values: numbers(rows.map(([, [, value]]) => value)),
        },
      ],
    });
  }

  function framesOf({ panel, answers }) {
    const asked = (panel.targets || []).filter((target) => answers[target.refId]?.length);
    return asked.flatMap((target) => (target.format === 'table'
      ? [asTable(target, answers[target.refId], asked.length > 1)]
      : asSeries(target, answers[target.refId])));
  }

  function first(observable) {
    return new Promise((resolve, reject) => observable.subscribe({ next: resolve, error: reject }));
  }

  async function framesFor(question, theme) {
    const context = { interpolate: (text) => text };
    const transformed = await first(
      data.transformDataFrame(question.panel.transformations || [], framesOf(question), context));
    return data.applyFieldOverrides({
      data: transformed, fieldConfig: question.panel.fieldConfig, replaceVariables: (text) => text,
      theme, fieldConfigRegistry: registry, timeZone: 'utc',
    });
  }

  // Return names, colours and the last hundred cells of frames, as they are written and painted.
  function describe(frames, theme) {
    return frames.map((frame) => ({
      fields: frame.fields.map((field) => ({
        name: data.getFieldDisplayName(field, frame, frames),
        type: field.type,
        hidden: field.config.custom?.hidden === true || field.config.custom?.hideFrom?.viz === true,
        inLegend: field.config.custom?.hideFrom?.legend !== true,
        colour: field.type === FieldType.number ? data.getFieldSeriesColor(field, theme).color : null,
        painted: field.config.custom?.cellOptions?.type ?? null,
        cells: [...field.values].slice(-100).map((value) => {
          const shown = field.display(value);
          return { value: value ?? null, text: data.formattedValueToString(shown), colour: shown.color ?? null };
        }),
      })),
    }));
  }

  return { framesFor, describe };
};
