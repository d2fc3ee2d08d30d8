/** Ten questions as assistants put them, in SQL that other SQLite builds understand too. */
export const statements: readonly [question: string, sql: string][] = [
  ['formats', 'select displayFormat, count(*) from ads group by 1 order by 2 desc'],
  ['months', 'select startedMonth, count(*), sum(active) from ads group by 1 order by 1'],
  ['advertisers', 'select pageName, count(*), avg(daysRunning), max(duplicates) from ads group by 1 order by 2 desc'],
  [
    'countries',
    'select country, count(*), avg(daysRunning) from ads join ad_countries using (id) group by 1 order by 2 desc',
  ],
  ['languages', 'select language, displayFormat, count(*) from ads group by 1, 2 order by 3 desc'],
  ['longest', 'select pageName, headline, daysRunning from ads where active = 1 order by daysRunning desc limit 20'],
  ['variants', 'select pageName, count(*), count(distinct variant) from ads group by 1 having count(*) > 5'],
  ['search', "select id, firstLine from ads where text like '%free%' and ctaType = 'SHOP_NOW'"],
  [
    'percentile',
    'with d as (select daysRunning, row_number() over (order by daysRunning) r, count(*) over () n from ads where daysRunning is not null) select max(daysRunning) from d where r <= 0.9 * n',
  ],
  ['json', "select json_extract(json, '$.page.adsAmount'), count(*) from ads group by 1"],
];
