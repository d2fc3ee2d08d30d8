/**
 * How well the tools are found among others, whether programs can be written against them, and what answers cost: without
 * a model and without a network. `npm run evals` prints it and writes docs/evals.md. It fails where *Found* or
 * *Programmed* is less than the page says, and leaves the page as it is.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type Answered, answerQuestions } from './answered.ts';
import { openDemo, readRawDemo } from './demo.ts';
import { type Ranked, rankQuestions, shown } from './found.ts';
import { type Programmed, runPrograms } from './programmed.ts';

const page = new URL('../../docs/evals.md', import.meta.url);
const before = existsSync(page) ? readFileSync(page, 'utf8') : '';
const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const table = (head: string[], rows: (string | number)[][]) =>
  [head, head.map(() => '---'), ...rows]
    .map((row) => `| ${row.map((one) => cell(String(one))).join(' | ')} |`)
    .join('\n');
const number = (value: number) => value.toLocaleString('en-US');

const isFound = ({ rank }: Ranked) => rank >= 1 && rank <= shown;
const isRight = ({ problems, answer, expected }: Programmed) => problems.length === 0 && answer === expected;
const shareOf = <One>(all: readonly One[], holds: (one: One) => boolean) =>
  `${all.filter(holds).length} of ${all.length}`;

const demo = await openDemo();
const raw = await readRawDemo();
const { ranked, others } = await rankQuestions(demo.client);
const programs = await runPrograms(demo.client, raw);
await demo.close();
const answered = await answerQuestions();

const [tuning, heldOut] = [ranked.filter((one) => one.tuning), ranked.filter((one) => !one.tuning)];
const sum = (of: 'calls' | 'credits' | 'tokens' | 'rawTokens') => answered.reduce((all, one) => all + one[of], 0);
const otherTools = others.reduce((all, { tools }) => all + tools.length, 0);

const text = `# Evals

For reviewers: what can be shown without a model: whether a host that looks tools up by words finds the right one, whether a program can be written against the types of the results, and what answers take. \`npm run evals\` writes this page, without a network. CI runs it, and fails where *Found* or *Programmed* is less than it says here.

**Found: ${shareOf(ranked, isFound)}** · **Programmed: ${shareOf(programs, isRight)}** · **Answered: ${answered.length} questions, ${number(sum('calls'))} calls, ${number(sum('tokens'))} tokens, ${number(sum('credits'))} credits**

## What this does not show

- Whether a model asks for the right tool, calls it well, or draws the right conclusion: no model takes part. The programs and the calls were written by people who know the tools.
- What a host really ranks by. Hosts differ, and do not say: this is BM25 over names, titles and descriptions, with most endings of words cut off. Arguments are left out, because those of the other servers are not at hand.
- Real ads. The demo's are generated, shorter than real ones, and complete; [BENCHMARKS.md](../BENCHMARKS.md) has tokens of real ones.

## Found

${ranked.length} questions from public posts and threads, each linked in [questions.json](../bench/evals/questions.json) with the tools that answer it, ranked among ${otherTools} tools of ${others.length} other servers ([their names and descriptions](../bench/evals/other-servers.json), with source and date). A question counts where one of the right tools is among the first ${shown}. Descriptions may be tuned on half of the questions: ${shareOf(tuning, isFound)}; the others are kept out of that: ${shareOf(heldOut, isFound)}.

Not found:

${table(
  ['question', 'right', 'rank', 'first'],
  ranked
    .filter((one) => !isFound(one))
    .map((one) => [one.question, one.tools.join(', '), one.rank || 'no such tool', one.before.join(', ')]),
)}

## Programmed

Twelve [programs](../bench/evals/programs) as a model writes them in code mode, against types made from \`tools/list\` with json-schema-to-typescript. One is right if the compiler accepts it, strictly, and it gives the number that everything the service holds gives.

${table(
  ['question', 'types', 'answer', 'right'],
  programs.map((one) => [
    one.question,
    one.problems.length === 0 ? 'accepted' : `${one.problems.length} errors`,
    one.answer,
    one.expected,
  ]),
)}

## Answered

Thirty questions in one session on demo data, with fixed calls: what an earlier one read is not read again. Tokens are of o200k_base: those of the results' text, and beside them those of the service's answers that were needed for it.

${table(
  ['question', 'answer', 'tools', 'calls', 'tokens', 'as the service sends it', 'credits'],
  answered.map((one: Answered) => [
    ...[one.question, one.answer, [...new Set(one.tools)].join(', '), one.calls],
    ...[number(one.tokens), number(one.rawTokens), one.credits],
  ]),
)}

In all ${number(sum('tokens'))} tokens; the service's answers have ${number(sum('rawTokens'))}.
`;

process.stdout.write(text);
for (const { problems } of programs) for (const problem of problems) process.stderr.write(`${problem}\n`);
const fell = ['Found', 'Programmed'].filter((name) => {
  const countIn = (one: string) => Number(new RegExp(`\\*\\*${name}: (\\d+) of`).exec(one)?.[1] ?? 0);
  return countIn(text) < countIn(before);
});
if (fell.length === 0) writeFileSync(page, text);
else {
  process.stderr.write(`${fell.join(' and ')} fell: docs/evals.md says more.\n`);
  process.exitCode = 1;
}
