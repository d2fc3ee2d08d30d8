import { readFileSync } from 'node:fs';
import { skillEntry } from '@modelcontextprotocol/server/ext/skills';

const folder = new URL('../../docs/skill/ad-research/', import.meta.url);
const fileNames = ['SKILL.md', 'vocabulary.md'];
const fileTexts = fileNames.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')] as const);

/**
 * The skill (instructions in Markdown) that teaches a model how to research ads with these tools. `entry` describes the
 * skill in the response to `skills/list` (SEP-2640). `texts` maps the URL of each file to its text. The build replaces
 * this module with the computed object, so that the server does not read `docs/skill`.
 */
export const skill = {
  entry: await skillEntry('ad-research', Object.fromEntries(fileTexts)),
  texts: Object.fromEntries(fileTexts.map(([name, text]) => [`skill://ad-research/${name}`, text])),
};

export const skillTools = ['count_ads', 'gather_ads', 'query_ads'];
