import * as z from 'zod';
import { createInvalidRequestError } from '../api/errors.ts';
import { findRecordsByName } from '../dataset/named-records.ts';
import { parseReports } from '../dataset/saved-reports.ts';
import { normalizeLine, quote, sanitizeLine } from '../views/safe-text.ts';
import { parseWatches } from '../watches/stored-watches.ts';
import { defineTool } from './tool.ts';

export const unwatchAds = defineTool({
  name: 'unwatch_ads',
  title: 'Stop monitoring',
  description: 'Stop monitoring: remove a watch or a stored report. Ads and files stay.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  buildExampleArguments: () => ({ name: 'Videos in Germany' }),
  operations: [],
  inputSchema: z.strictObject({
    name: z.string().optional().describe('Name of the watch.'),
    report: z.string().optional().describe('Name of a stored report, instead of name.'),
  }),
  createOutputSchema: () => z.looseObject({ removed: z.boolean().describe('true after the removal.') }),
  async run({ name, report }, { openDataset }) {
    if ((name === undefined) === (report === undefined)) throw createInvalidRequestError('Pass either name or report.');
    const { userRecords } = await openDataset();
    const isReportName =
      name !== undefined &&
      !(await userRecords.read('watch')).has(normalizeLine(name)) &&
      (await userRecords.read('report')).has(normalizeLine(name));
    if (isReportName)
      throw createInvalidRequestError(`${quote(sanitizeLine(name))} is a report: pass report, not name.`);
    await userRecords.update(report === undefined ? 'watch' : 'report', (records) => {
      const recordsToRemove =
        report === undefined
          ? findRecordsByName('watch', parseWatches(records), [name ?? ''])
          : findRecordsByName('kept report', parseReports(records), [report]);
      return { remove: recordsToRemove.map((record) => record.name), result: undefined };
    });
    return { data: { removed: true } };
  },
  render: (_, { name, report }) =>
    `${name === undefined ? 'Report' : 'Watch'} ${quote(sanitizeLine(name ?? report ?? ''))} is removed.`,
});
