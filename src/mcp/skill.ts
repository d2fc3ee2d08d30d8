import { readFileSync } from 'node:fs';
import { skillEntry } from '@modelcontextprotocol/server/ext/skills';

const folder = new URL('../../docs/skill/ad-research/', import.meta.url);
const names = ['SKILL.md', 'vocabulary.md'];
const texts = names.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')] as const);

/**
 * The skill that teaches a model how to research ads with these tools, read from `docs/skill`. `entry` is the skill's
 * item in `skills/list` (SEP-2640), with its frontmatter and the URL, size and digest of each file. `texts` maps the
 * URL of each file to its content. The build replaces this module with the computed values.
 */
export const skill = {
  entry: await skillEntry('ad-research', Object.fromEntries(texts)),
  texts: Object.fromEntries(texts.map(([name, text]) => [`skill://ad-research/${name}`, text])),
};

export const skillTools = ['count_ads', 'gather_ads', 'query_ads'];
