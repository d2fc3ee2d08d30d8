import { readFileSync } from 'node:fs';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';

const readJson = (file: string) => JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'));

interface Question {
  question: string;
  source: string;
  /** The names of the tools of this server that can answer the question. */
  tools: string[];
  /**
   * True if authors may improve tool descriptions with this question in mind. The other questions are kept for an
   * unbiased check.
   */
  tuning: boolean;
}

interface OtherServer {
  server: string;
  source: string;
  commit: string;
  date: string;
  tools: [name: string, description: string][];
}

/** A user's question, and how well a search for tools found a tool that answers it. */
export interface RankedQuestion extends Question {
  /**
   * The position of the first suitable tool in the search results, starting at 1. The position is 0 if no tool of this
   * server can answer the question.
   */
  rank: number;
  /** Up to three tools that are ranked above the first tool that answers the question, e.g. `search_code (github)`. */
  higherRankedTools: string[];
}

/**
 * The maximum number of tools that a model receives for a question, if its host searches for tools instead of listing
 * all of them.
 */
export const maxShownTools = 5;

const stopWords = new Set(
  'a an and any are as at be been by can could did do does for from get had has have how i if in is it its me my no not of on or our so than that the their them there these they this to us was we were what when where which who will with would you your'.split(
    ' ',
  ),
);

/** Splits a text into words for full-text search. Removes stop words and common word endings, e.g. `ing`. */
const splitIntoWords = (text: string): string[] =>
  text
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '' && !stopWords.has(word))
    .map((word) => word.replace(/(?<=[a-z]{2})(?:ies|ing|ers?|ed|es|e|s)$/, ''));

/**
 * Creates a function that ranks documents for a query with Okapi BM25 (Robertson and Zaragoza 2009). `k1` and `b` are
 * the constants of the formula, with their standard values. The function returns the indexes of the documents, best
 * first.
 */
function createRanker(documents: readonly string[][]): (query: readonly string[]) => number[] {
  const [k1, b] = [1.2, 0.75];
  const meanLength = documents.reduce((sum, words) => sum + words.length, 0) / documents.length;
  const wordCountsByDocument = documents.map((words) => {
    const counts = new Map<string, number>();
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
    return counts;
  });
  const computeWeight = (word: string) => {
    const matchingCount = wordCountsByDocument.filter((counts) => counts.has(word)).length;
    return Math.log(1 + (documents.length - matchingCount + 0.5) / (matchingCount + 0.5));
  };
  return (query) => {
    const weights = [...new Set(query)].map((word) => [word, computeWeight(word)] as const);
    const scores = wordCountsByDocument.map((counts, index) => {
      const length = (documents[index]?.length ?? 0) / meanLength;
      return weights.reduce((sum, [word, weight]) => {
        const count = counts.get(word) ?? 0;
        return sum + (weight * count * (k1 + 1)) / (count + k1 * (1 - b + b * length));
      }, 0);
    });
    return [...scores.keys()].sort((left, right) => (scores[right] ?? 0) - (scores[left] ?? 0));
  };
}

/**
 * Searches the tools of all servers with each question. Returns the rank of the first tool that answers the question,
 * and the tools that are ranked above it.
 */
export async function rankQuestions(
  client: Client,
): Promise<{ rankedQuestions: RankedQuestion[]; otherServers: OtherServer[] }> {
  const otherServers: OtherServer[] = readJson('other-servers.json');
  const { tools } = await client.listTools();
  const ourTools = tools.filter(({ name }) => !name.startsWith('board_'));
  // Put our tools last. If a tool of another server has the same score as one of our tools, the other tool then ranks
  // higher.
  const allTools = [
    ...otherServers.flatMap(({ server, tools }) => tools.map(([name, description]) => ({ server, name, description }))),
    ...ourTools.map(({ name, title = '', description = '' }) => ({
      server: '',
      name,
      description: `${title} ${description}`,
    })),
  ];
  const rank = createRanker(allTools.map(({ name, description }) => splitIntoWords(`${name} ${description}`)));
  const rankedQuestions = (readJson('questions.json') as Question[]).map((question) => {
    const rankedTools = rank(splitIntoWords(question.question)).map((index) => allTools[index]);
    const firstIndex = rankedTools.findIndex((tool) => tool?.server === '' && question.tools.includes(tool.name));
    const higherRankedTools = rankedTools.slice(0, Math.max(0, Math.min(firstIndex, 3)));
    return {
      ...question,
      rank: firstIndex + 1,
      higherRankedTools: higherRankedTools.map((tool) => `${tool?.name} (${tool?.server || 'ours'})`),
    };
  });
  return { rankedQuestions, otherServers };
}
