import { version } from '../../src/app.ts';
import { type Setting, settings } from '../../src/config/settings.ts';
import { formatDescription } from '../../src/mcp/described-tools.ts';
import { prompts } from '../../src/mcp/prompts.ts';
import { tools } from '../../src/tools/catalog.ts';
import { replaceMarkedSection } from './marked.ts';

/**
 * The publisher's details in package.json. They are maintained only there. `npm run docs` copies them into the
 * generated files for hosts and registries.
 */
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
  /** The URLs of the privacy policies. Hosts show these URLs as links before installation. */
  privacyPolicies: string[];
}

/** Returns the names of the fields in package.json that still contain a placeholder. */
export function listPlaceholders({ mcpName, homepage, repository, bugs, privacyPolicies }: Publisher): string[] {
  const publisherFields = { mcpName, homepage, 'repository.url': repository.url, 'bugs.url': bugs.url };
  const placeholderNames = Object.entries(publisherFields).flatMap(([name, value]) =>
    isPlaceholder(value) ? [name] : [],
  );
  return privacyPolicies.some(isPlaceholder) ? [...placeholderNames, 'privacyPolicies'] : placeholderNames;
}

const isPlaceholder = (value: string): boolean => /^com\.example\/|^(git\+)?https:\/\/example\.com\b/.test(value);

const omitPlaceholder = (value: string): string | undefined => (isPlaceholder(value) ? undefined : value);
const readRepositoryUrl = ({ repository }: Publisher) => omitPlaceholder(repository.url)?.replace(/^git\+|\.git$/g, '');

/** The file name of the screenshot that hosts show before installation. */
export const screenshotFile = 'conversation.jpg';

/**
 * Updates the manifest of the desktop bundle (MCPB). Placeholders are omitted, because they would become broken links.
 * The manifest stays at version 0.3: version 0.4 only adds features for Python, and some hosts do not support it.
 */
export function updateManifest(manifest: object, publisher: Publisher): object {
  const repository = readRepositoryUrl(publisher);
  return {
    ...manifest,
    author: { name: publisher.author },
    license: publisher.license,
    keywords: publisher.keywords,
    repository: repository && { type: 'git', url: repository },
    homepage: omitPlaceholder(publisher.homepage),
    documentation: repository && `${repository}#readme`,
    support: omitPlaceholder(publisher.bugs.url),
    screenshots: [screenshotFile],
    privacy_policies: publisher.privacyPolicies.filter((url) => !isPlaceholder(url)),
    version,
    tools: tools.map((tool) => ({ name: tool.name, description: formatDescription(tool) })),
    prompts: prompts.map(({ name, description, arguments: promptArguments, buildText }) => {
      const names = promptArguments.map((argument) => argument.name);
      const text = buildText(Object.fromEntries(names.map((argument) => [argument, `"\${arguments.${argument}}"`])));
      return { name, description, arguments: names, text };
    }),
  };
}

/** The settings that have a title. Desktop hosts show only these settings in their installation form. */
const titledSettings = Object.values<Setting>(settings).filter(({ title }) => title !== undefined);

/**
 * The data formats of settings in the MCP registry. The keys are the placeholders for values in the command's help,
 * e.g. `folder`.
 */
const registryFormats: Record<string, string> = { credits: 'number', folder: 'filepath' };

/** Updates server.json, the file for the MCP registry, with the publisher, the version and the settings. */
export function updateRegistryFile(file: object, publisher: Publisher): object {
  const repositoryUrl = readRepositoryUrl(publisher);
  const [, repositoryHost] = /^https:\/\/(github|gitlab)\.com\//.exec(repositoryUrl ?? '') ?? [];
  return {
    ...file,
    name: publisher.mcpName,
    websiteUrl: omitPlaceholder(publisher.homepage),
    repository: repositoryHost && { url: repositoryUrl, source: repositoryHost },
    version,
    _meta: {
      // The registry has no separate fields for this information, such as keywords and screenshots. All paths are
      // relative to the repository.
      'io.modelcontextprotocol.registry/publisher-provided': {
        keywords: publisher.keywords,
        categories: ['marketing', 'research'],
        documentation: 'README.md',
        privacy: 'docs/privacy.md',
        screenshots: [`docs/pictures/${screenshotFile}`, 'docs/pictures/board-light.png', 'docs/pictures/report.png'],
      },
    },
    packages: [
      {
        registryType: 'npm',
        identifier: publisher.name,
        version,
        runtimeHint: 'npx',
        transport: { type: 'stdio' },
        environmentVariables: titledSettings.map(({ variable, help, isSecret, valueName: value = '' }) => ({
          name: variable,
          description: help,
          isRequired: false,
          format: value === '' && !isSecret ? 'boolean' : (registryFormats[value] ?? 'string'),
          isSecret: isSecret === true,
        })),
      },
    ],
  };
}

/** Inserts the image labels into the Dockerfile. Their names follow the OCI image specification. */
export function insertLabels(dockerfile: string, publisher: Publisher): string {
  const labels = Object.entries({
    title: publisher.name,
    description: publisher.description,
    version: publisher.version,
    licenses: publisher.license,
    url: omitPlaceholder(publisher.homepage),
    source: readRepositoryUrl(publisher),
  }).flatMap(([name, value]) =>
    value ? [`org.opencontainers.image.${name}=${JSON.stringify(value).replaceAll('$', '\\$')}`] : [],
  );
  const labelsPattern = /(# labels[^\n]*\n)[\s\S]*?(# \/labels)/;
  if (!labelsPattern.test(dockerfile))
    throw new Error('The Dockerfile has no "# labels" … "# /labels" for the generated labels.');
  return dockerfile.replace(
    labelsPattern,
    (_, before: string, after: string) => `${before}LABEL ${labels.join(' \\\n      ')}\n${after}`,
  );
}

/** Inserts the badges into the README, with values from package.json. */
export function insertBadges(readme: string, { license, engines: { node } }: Publisher): string {
  const formatBadge = (label: string, value: string, link: string) => {
    const badgeText = [label, value].map((text) => encodeURIComponent(text.replaceAll('-', '--'))).join('-');
    return `[![${label} ${value}](https://img.shields.io/badge/${badgeText}-25406b)](${link})`;
  };
  const badges = [
    formatBadge('licence', license, 'LICENSE'),
    formatBadge('Node', node, '#try-it'),
    formatBadge('MCP', '2024-11-05 to 2026-07-28', 'docs/operations.md#over-http'),
    formatBadge('dependencies at run time', '0', 'CONTRIBUTING.md#dependencies'),
  ];
  return replaceMarkedSection(readme, 'badges', badges.join(' '));
}
