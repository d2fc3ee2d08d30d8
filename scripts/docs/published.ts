import { version } from '../../src/app.ts';
import { type Setting, settings } from '../../src/config/settings.ts';
import { describe } from '../../src/mcp/described-tools.ts';
import { prompts } from '../../src/mcp/prompts.ts';
import { tools } from '../../src/tools/catalog.ts';
import { replaceMarked } from './marked.ts';

/** Who publishes this: written once, in package.json, and carried from there to wherever hosts and registries look. */
export interface Publisher {
  name: string;
  version: string;
  description: string;
  license: string;
  engines: { node: string };
  author: string;
  keywords: string[];
  mcpName: string;
  homepage: string;
  repository: { type: string; url: string };
  bugs: { url: string };
  /** Addresses of the privacy policies that hosts show before they install. */
  privacyPolicies: string[];
}

/** The fields still to be filled in: the sources cannot know who publishes them. */
export function placeholders({ mcpName, homepage, repository, bugs, privacyPolicies }: Publisher): string[] {
  const values = { mcpName, homepage, 'repository.url': repository.url, 'bugs.url': bugs.url };
  const open = Object.entries(values).flatMap(([name, value]) => (isPlaceholder(value) ? [name] : []));
  return privacyPolicies.some(isPlaceholder) ? [...open, 'privacyPolicies'] : open;
}

const isPlaceholder = (value: string): boolean => /^com\.example\/|^(git\+)?https:\/\/example\.com\b/.test(value);

const unlessPlaceholder = (value: string): string | undefined => (isPlaceholder(value) ? undefined : value);
const repositoryOf = ({ repository }: Publisher) => unlessPlaceholder(repository.url)?.replace(/^git\+|\.git$/g, '');

/** A conversation in a host, shown before somebody installs. */
export const screenshot = 'conversation.jpg';

/**
 * The desktop manifest (MCPB). What is not filled in is left out, so that no link leads nowhere. Format 0.3: what 0.4
 * adds is for Python alone, and not every host takes it yet.
 */
export function withManifest(manifest: object, publisher: Publisher): object {
  const repository = repositoryOf(publisher);
  return {
    ...manifest,
    author: { name: publisher.author },
    license: publisher.license,
    keywords: publisher.keywords,
    repository: repository && { type: 'git', url: repository },
    homepage: unlessPlaceholder(publisher.homepage),
    documentation: repository && `${repository}#readme`,
    support: unlessPlaceholder(publisher.bugs.url),
    screenshots: [screenshot],
    privacy_policies: publisher.privacyPolicies.filter((address) => !isPlaceholder(address)),
    version,
    tools: tools.map((tool) => ({ name: tool.name, description: describe(tool) })),
    prompts: prompts.map(({ name, description, arguments: given, write }) => {
      const names = given.map((argument) => argument.name);
      const text = write(Object.fromEntries(names.map((argument) => [argument, `"\${arguments.${argument}}"`])));
      return { name, description, arguments: names, text };
    }),
  };
}

/** The settings that a person may want to enter when installing: a desktop host's form offers them, too. */
const offered = Object.values<Setting>(settings).filter(({ title }) => title !== undefined);

/** Of the format, by what help calls the value. */
const formats: Record<string, string> = { credits: 'number', folder: 'filepath' };

/** The registry's file: who publishes the package, its version, and the settings that it takes. */
export function withRegistryFile(file: object, publisher: Publisher): object {
  const url = repositoryOf(publisher);
  const [, source] = /^https:\/\/(github|gitlab)\.com\//.exec(url ?? '') ?? [];
  return {
    ...file,
    name: publisher.mcpName,
    websiteUrl: unlessPlaceholder(publisher.homepage),
    repository: source && { url, source },
    version,
    _meta: {
      // What the registry has no field for. Paths are those of the repository.
      'io.modelcontextprotocol.registry/publisher-provided': {
        keywords: publisher.keywords,
        categories: ['marketing', 'research'],
        documentation: 'README.md',
        privacy: 'docs/privacy.md',
        screenshots: [`docs/pictures/${screenshot}`, 'docs/pictures/board-light.png', 'docs/pictures/report.png'],
      },
    },
    packages: [
      {
        registryType: 'npm',
        identifier: publisher.name,
        version,
        runtimeHint: 'npx',
        transport: { type: 'stdio' },
        environmentVariables: offered.map(({ variable, help, secret, valueName: value = '' }) => ({
          name: variable,
          description: help,
          isRequired: false,
          format: value === '' && !secret ? 'boolean' : (formats[value] ?? 'string'),
          isSecret: secret === true,
        })),
      },
    ],
  };
}

/** The image's labels, by the names of the OCI image specification, between two comments of the Dockerfile. */
export function withLabels(dockerfile: string, publisher: Publisher): string {
  const labels = Object.entries({
    title: publisher.name,
    description: publisher.description,
    version: publisher.version,
    licenses: publisher.license,
    url: unlessPlaceholder(publisher.homepage),
    source: repositoryOf(publisher),
  }).flatMap(([name, value]) =>
    value ? [`org.opencontainers.image.${name}=${JSON.stringify(value).replaceAll('$', '\\$')}`] : [],
  );
  const marked = /(# labels[^\n]*\n)[\s\S]*?(# \/labels)/;
  if (!marked.test(dockerfile)) throw new Error('The Dockerfile has no "# labels" … "# /labels" to write into.');
  return dockerfile.replace(
    marked,
    (_, before: string, after: string) => `${before}LABEL ${labels.join(' \\\n      ')}\n${after}`,
  );
}

/** Badges whose text is true of this package by what package.json says. */
export function withBadges(readme: string, { license, engines: { node } }: Publisher): string {
  const badge = (label: string, value: string, link: string) => {
    const text = [label, value].map((part) => encodeURIComponent(part.replaceAll('-', '--'))).join('-');
    return `[![${label} ${value}](https://img.shields.io/badge/${text}-25406b)](${link})`;
  };
  const badges = [
    badge('licence', license, 'LICENSE'),
    badge('Node', node, '#try-it'),
    badge('MCP', '2024-11-05 to 2026-07-28', 'docs/operations.md#over-http'),
    badge('dependencies at run time', '0', 'CONTRIBUTING.md#dependencies'),
  ];
  return replaceMarked(readme, 'badges', badges.join(' '));
}
