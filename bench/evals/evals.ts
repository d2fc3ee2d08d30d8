/**
 * Evaluates the tools without a model or network access. The evaluations check whether hosts find the tools among the
 * tools of other servers, and whether programs compile against the types of the results. They also check what answers
 * cost, and whether results state the limits of the data. `npm run evals` prints a page and writes it to docs/evals.md.
 * If *Found*, *Programmed* or *Limits stated* is lower than on the existing page, the command fails and leaves the page
 * unchanged.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type AnsweredQuestion, answerQuestions } from './answer-questions.ts';
import { openDemo, readRawDemo } from './demo.ts';
import { type DataLimitResult, findLimits } from './find-limits.ts';
import { maxShownTools, type RankedQuestion, rankQuestions } from './rank-tools.ts';
import { type ProgramResult, runPrograms } from './run-programs.ts';

const pageUrl = new URL('../../docs/evals.md', import.meta.url);
const previousPage = existsSync(pageUrl) ? readFileSync(pageUrl, 'utf8') : '';
const escapeCell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const formatTable = (headings: string[], rows: (string | number)[][]) =>
  [headings, headings.map(() => '---'), ...rows]
    .map((row) => `| ${row.map((cell) => escapeCell(String(cell))).join(' | ')} |`)
    .join('\n');
const formatNumber = (value: number) => value.toLocaleString('en-US');

const isFound = ({ rank }: RankedQuestion) => rank >= 1 && rank <= maxShownTools;
const isCorrect = ({ typeErrors, answer, expectedAnswer }: ProgramResult) =>
  typeErrors.length === 0 && answer === expectedAnswer;
const formatShare = <Item>(all: readonly Item[], isCounted: (item: Item) => boolean) =>
  `${all.filter(isCounted).length} of ${all.length}`;

const demo = await openDemo();
const rawDemoData = await readRawDemo();
const { rankedQuestions, otherServers } = await rankQuestions(demo.client);
const programs = await runPrograms(demo.client, rawDemoData);
await demo.close();
const answers = await answerQuestions();
const dataLimitResults = await findLimits();
const isStated = ({ limitSentence }: DataLimitResult) => limitSentence !== undefined;

const [tuningQuestions, heldOutQuestions] = [
  rankedQuestions.filter((question) => question.tuning),
  rankedQuestions.filter((question) => !question.tuning),
];
const sumCosts = (costName: 'callCount' | 'credits' | 'tokenCount' | 'rawTokenCount') =>
  answers.reduce((sum, answer) => sum + answer[costName], 0);
const otherToolCount = otherServers.reduce((sum, { tools }) => sum + tools.length, 0);

const pageText = `# Evals

How well does Ad Library MCP serve AI models? This page gives reviewers figures for four questions that they can answer without running a model:

1. Does an AI app that searches for tools find the right tool?
2. Do programs that use the tools match the tools' result types?
3. How many calls, tokens and credits does it take to answer a set of questions?
4. Do the results say which conclusions the data cannot support?

\`npm run evals\` measures these figures without network access and writes this page. CI runs the same command and fails if *Found*, *Programmed* or *Limits stated* is lower than on this page.

**Found: ${formatShare(rankedQuestions, isFound)}** · **Programmed: ${formatShare(programs, isCorrect)}** · **Limits stated: ${formatShare(dataLimitResults, isStated)}** · **Answered: ${answers.length} questions, ${formatNumber(sumCosts('callCount'))} calls, ${formatNumber(sumCosts('tokenCount'))} tokens, ${formatNumber(sumCosts('credits'))} credits**

## What this does not show

- **What a model does.** No model takes part, so the page does not show whether a model chooses the right tool, calls it correctly, or draws the right conclusion. People who know the tools wrote the programs and the calls.
- **How a host ranks tools.** Each host ranks tools in its own, unpublished way. This evaluation applies the BM25 ranking function to names, titles and descriptions, after removing most word endings. It ignores arguments, because the arguments of the other servers' tools are not available.
- **Results with real ads.** The demo ads are generated. They are shorter than real ads, and few of their fields are missing. For token counts of real ads, see [BENCHMARKS.md](../BENCHMARKS.md).

## Found

This test uses ${rankedQuestions.length} questions about ads from public posts and threads. [questions.json](../bench/evals/questions.json) lists the source of each question and the tools that answer it.

For each question, this test ranks our tools together with ${otherToolCount} tools from ${otherServers.length} other servers ([names and descriptions](../bench/evals/other-servers.json), with source and date). A question counts as found if a tool that answers it ranks among the first ${maxShownTools}. Half of the questions are held out as a check and must not influence the tool descriptions:

| Half | Found |
| --- | --- |
| questions that may be used to tune tool descriptions | ${formatShare(tuningQuestions, isFound)} |
| questions that may not be used for tuning | ${formatShare(heldOutQuestions, isFound)} |

These questions were not found:

${formatTable(
  ['question', 'right', 'rank', 'first'],
  rankedQuestions
    .filter((question) => !isFound(question))
    .map((question) => [
      question.question,
      question.tools.join(', '),
      question.rank || 'no such tool',
      question.higherRankedTools.join(', '),
    ]),
)}

## Programmed

This test runs twelve [programs](../bench/evals/programs) of the kind that a model would write in [code mode](programs.md#code-mode). A program counts as correct if it passes two checks:

- The TypeScript compiler accepts the program in strict mode, with types generated from \`tools/list\` using json-schema-to-typescript.
- The program returns the same number as a direct count over all demo data.

${formatTable(
  ['question', 'types', 'answer', 'right'],
  programs.map((program) => [
    program.question,
    program.typeErrors.length === 0 ? 'accepted' : `${program.typeErrors.length} errors`,
    program.answer,
    program.expectedAnswer,
  ]),
)}

## Answered

This test answers thirty questions in one session on demo data, with fixed tool calls. The calls do not reread ads that were read for an earlier question.

- The *tokens* column counts the tokens in the text of the results (with the o200k_base tokenizer).
- The *as the service sends it* column counts the tokens in the service responses behind these results.

${formatTable(
  ['question', 'answer', 'tools', 'calls', 'tokens', 'as the service sends it', 'credits'],
  answers.map((answer: AnsweredQuestion) => [
    ...[answer.question, answer.answer, [...new Set(answer.toolNames)].join(', '), answer.callCount],
    ...[formatNumber(answer.tokenCount), formatNumber(answer.rawTokenCount), answer.credits],
  ]),
)}

In total, the results have ${formatNumber(sumCosts('tokenCount'))} tokens, and the service responses have ${formatNumber(sumCosts('rawTokenCount'))} tokens.

## Limits stated

This test asks ten questions that the demo data cannot answer, because the data has four gaps. The figures in the results look like answers, so the results must say why they are not. The last column of the table quotes the sentence that says so. The data has these gaps:

- One advertiser was seen on only one day.
- One advertiser has placeholders instead of texts.
- One advertiser has country data for only a third of its ads.
- One \`gather_ads\` call stopped after 50 ads.

${formatTable(
  ['question', 'figures', 'tools', 'calls', 'tokens', 'cannot be told from these ads, because'],
  dataLimitResults.map((result) => [
    result.question,
    result.answerWithoutLimit,
    result.toolNames.join(', '),
    result.callCount,
    result.tokenCount,
    result.limitSentence ?? 'not stated',
  ]),
)}
`;

process.stdout.write(pageText);
for (const { typeErrors } of programs) for (const typeError of typeErrors) process.stderr.write(`${typeError}\n`);
const loweredFigures = ['Found', 'Programmed', 'Limits stated'].filter((name) => {
  const readFigure = (page: string) => Number(new RegExp(`\\*\\*${name}: (\\d+) of`).exec(page)?.[1] ?? 0);
  return readFigure(pageText) < readFigure(previousPage);
});
if (loweredFigures.length === 0) writeFileSync(pageUrl, pageText);
else {
  process.stderr.write(`${loweredFigures.join(' and ')} fell: docs/evals.md has a higher figure.\n`);
  process.exitCode = 1;
}
