import { readFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildCommandLine, type HttpCommand, startHttpCommand } from '../support/process.ts';

const readText = (name: string) =>
  readFileSync(new URL(`../../docs/skill/ad-research/${name}`, import.meta.url), 'utf8');

const listSkills = async (mode: 'auto' | 'legacy', transport: Parameters<Client['connect']>[0]) => {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  return { client, skills: new SkillsClient(client) };
};

let served: HttpCommand;
beforeAll(async () => {
  served = await startHttpCommand(['--demo']);
});
afterAll(async () => void (await served.close()));

const stdio = (...args: string[]) => new StdioClientTransport(buildCommandLine(['--demo', ...args]));

test.each(['auto', 'legacy'] as const)(
  'clients can list and read the skill in this package (version negotiation: %s)',
  async (mode) => {
    for (const transport of [stdio(), new StreamableHTTPClientTransport(new URL(served.url))]) {
      const { client, skills } = await listSkills(mode, transport);
      const [entry, ...otherSkills] = (await skills.list()).skills;
      expect(otherSkills).toEqual([]);
      expect(entry).toMatchObject({ uri: 'skill://ad-research/SKILL.md', frontmatter: { name: 'ad-research' } });
      if (entry === undefined) throw new Error('no skill is listed');
      expect((await skills.get(entry.uri)).skill).toEqual(entry);
      // The client verifies the file's size, digest and frontmatter.
      for (const name of ['SKILL.md', 'vocabulary.md']) {
        const expectedFile = { verified: true, text: readText(name), mimeType: 'text/markdown' };
        expect(await skills.read(entry, name)).toMatchObject(expectedFile);
      }
      await expect(skills.get('skill://other/SKILL.md')).rejects.toThrow('skills/list names those that are');
      await client.close();
    }
  },
);

test('the skill is not listed if one of the tools that it uses is not available', async () => {
  const { client, skills } = await listSkills('auto', stdio('--tools', 'search_ads,query_ads,count_ads'));
  expect((await skills.list()).skills).toEqual([]);
  await expect(client.readResource({ uri: 'skill://ad-research/SKILL.md' })).rejects.toThrow();
  await client.close();
});
