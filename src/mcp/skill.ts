import { readFileSync } from 'node:fs';
import { skillEntry } from '@modelcontextprotocol/server/ext/skills';

const folder = new URL('../../docs/skill/ad-research/', import.meta.url);
const names = ['SKILL.md', 'vocabulary.md'];
const texts = names.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')] as const);

/**
 * How to research ads with these tools, as the skill that `docs/skill` holds: the entry that lists it (SEP-2640:
 * frontmatter, and address, size and digest of each file), and the files by their addresses. The build puts the values
 * in place of this module.
 */
export const skill = {
  entry: await skillEntry('ad-research', Object.fromEntries(texts)),
  texts: Object.fromEntries(texts.map(([name, text]) => [`skill://ad-research/${name}`, text])),
};

export const skillTools = ['count_ads', 'gather_ads', 'query_ads'];
