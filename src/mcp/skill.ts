import { readFileSync } from 'node:fs';
import { skillEntry } from '@modelcontextprotocol/server/ext/skills';

const text = readFileSync(new URL('../../docs/skill/ad-research/SKILL.md', import.meta.url), 'utf8');

/**
 * How to research ads with these tools, as the skill that `docs/skill` holds, with the entry that lists it (SEP-2640:
 * address, frontmatter, size and digest). The build puts the values in place of this module.
 */
export const skill = { text, entry: await skillEntry('ad-research', { 'SKILL.md': text }) };

/** The tools that the skill works with. */
export const skillTools = ['count_ads', 'gather_ads', 'query_ads'];
