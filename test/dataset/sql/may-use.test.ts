import { expect, test } from 'vitest';
import { mayUse, SqlEngine } from '../../../src/dataset/sql/engine.ts';
import { statementLimits } from '../../../src/dataset/sql/statement.ts';

const codes = { SQLITE_SELECT: 21, SQLITE_READ: 20, SQLITE_FUNCTION: 31, SQLITE_RECURSIVE: 33 };
const _mayRead = (first: string, second: string) => mayUse({ code: 20, first, second }, codes);

/** Looked at one by one: they read their arguments, the clock or chance, and nothing else. */
const harmless =
  '-> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor format glob group_concat hex if ifnull iif instr json json_array json_array_insert json_array_length json_error_position json_extract json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_array_insert jsonb_extract jsonb_group_array jsonb_group_object jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set julianday lag last_value lead length like likelihood likely ln log log10 log2 lower ltrim max median min mod nth_value ntile nullif octet_length percent_rank percentile percentile_cont percentile_disc pi pow power printf quote radians random randomblob rank replace round row_number rtrim sign sin sinh sqrt strftime string_agg substr substring subtype sum tan tanh time timediff total trim trunc typeof unhex unicode unistr unistr_quote unixepoch unlikely upper zeroblob';

test('of the functions this build has, only those looked at may be used', async () => {
  const engine = await SqlEngine.open(statementLimits);
  const reader = engine.prepare('select distinct name from pragma_function_list');
  const names: string[] = [];
  while (reader.step()) names.push(String(reader.row((text) => text)[0]));
  const allowed = names.filter((name) => mayUse({ code: 31, first: '', second: name }, codes));
  expect(allowed.toSorted()).toEqual(harmless.split(' ').toSorted());
});
