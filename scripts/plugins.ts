import { readFileSync } from 'node:fs';
import { strToU8 } from 'fflate';
import { encodeJson, readServerFiles } from './bundle.ts';

const root = new URL('../', import.meta.url);
const readProjectFile = (path: string) => readFileSync(new URL(path, root));

/** The name of the plugin in every host. Its MCP server has the same name. */
const pluginName = 'ad-library';

/**
 * The fields of `manifest.json` that are copied into plugins. `npm run docs` writes these fields into `manifest.json`,
 * with the values from `package.json`.
 */
interface Manifest {
  version: string;
  description: string;
  author: { name: string };
  license: string;
  keywords: string[];
  homepage?: string;
  repository?: { url: string };
  server: { mcp_config: { env: Record<string, string> } };
  user_config: Record<string, object>;
}

/** A plugin for one kind of host. */
interface HostPlugin {
  /** The name of the plugin's folder in `dist-plugins`. */
  folderName: string;
  /** The contents of the plugin's files, by path. */
  files: Record<string, Uint8Array>;
}

/** Packs the plugins from `dist/`. Each plugin contains the built server and the skill, and requires only Node. */
export function packPlugins(): HostPlugin[] {
  const manifest: Manifest = JSON.parse(String(readProjectFile('manifest.json')));
  const skillFiles = ['SKILL.md', 'vocabulary.md'].map((file): [string, Uint8Array] => [
    `skills/ad-research/${file}`,
    readProjectFile(`docs/skill/ad-research/${file}`),
  ]);
  const sharedFiles = { ...readServerFiles(), ...Object.fromEntries(skillFiles) };
  const descriptions = [
    describeAgentPlugin(manifest),
    describeClaudePlugin(manifest),
    describeGeminiExtension(manifest),
  ];
  return descriptions.map(({ folderName, readmeParagraphs, jsonFiles, iconPath }) => ({
    folderName,
    files: {
      ...Object.fromEntries(Object.entries(jsonFiles).map(([path, value]) => [path, encodeJson(value)])),
      ...(iconPath && { [iconPath]: readProjectFile('docs/pictures/icon.png') }),
      'README.md': strToU8(`# Ad Library\n\n${manifest.description}.\n\n${readmeParagraphs.join('\n\n')}\n`),
      ...sharedFiles,
    },
  }));
}

interface PluginDescription {
  folderName: string;
  /** Paragraphs of the plugin's `README.md`. */
  readmeParagraphs: string[];
  jsonFiles: Record<string, object>;
  /** The path at which the host looks for the icon. */
  iconPath?: string;
}

/**
 * Returns the path of the server file, e.g. `${CLAUDE_PLUGIN_ROOT}/dist/main.js`. The host replaces the placeholder
 * with the path of the plugin's folder.
 */
const formatMainFilePath = (placeholder: string) => `\${${placeholder}}/dist/main.js`;

/** The file by which Claude Code, Codex and Copilot CLI recognize a plugin marketplace. */
const marketplaceFile = '.claude-plugin/marketplace.json';

/** Describes a marketplace whose only plugin is in the same folder. */
const describeMarketplace = ({ description, author }: Manifest) => ({
  name: `${pluginName}-mcp`,
  description,
  owner: author,
  plugins: [{ name: pluginName, source: './', description }],
});

const describeMetadata = (manifest: Manifest) => ({
  name: pluginName,
  version: manifest.version,
  description: manifest.description,
  author: manifest.author,
  homepage: manifest.homepage,
  repository: manifest.repository?.url,
  license: manifest.license,
  keywords: manifest.keywords,
});

/**
 * Describes the plugin in the Agent Plugin format. The plugin starts the server with demo data, because the format
 * cannot ask the user for an API key, and plugins must not depend on environment variables.
 * @see https://github.com/agentplugins/agent-plugins-spec/blob/main/spec/1.0.0.md
 */
function describeAgentPlugin(manifest: Manifest): PluginDescription {
  const schemasUrl = 'https://agent-plugins.org/schemas/1.0.0';
  const serverConfig = {
    type: 'stdio',
    command: 'node',
    args: [formatMainFilePath('PLUGIN_ROOT')],
    env: { AD_LIBRARY_DEMO: 'true' },
  };
  return {
    folderName: 'agent-plugin',
    readmeParagraphs: [
      'This folder is an Agent Plugin (specification 1.0.0). It needs Node 20.19 or newer, but not 21, 22.0 or 22.1. It starts with demo data.',
      'To use your service, open `mcp.json` and replace `AD_LIBRARY_DEMO` in `env` by `AD_LIBRARY_API_KEY` and `AD_LIBRARY_BASE_URL`. Do not share the folder afterwards, because it then contains your key.',
    ],
    jsonFiles: {
      'plugin.json': { $schema: `${schemasUrl}/plugin.schema.json`, ...describeMetadata(manifest) },
      'mcp.json': { $schema: `${schemasUrl}/mcp.schema.json`, mcpServers: { [pluginName]: serverConfig } },
      [marketplaceFile]: describeMarketplace(manifest),
    },
  };
}

/**
 * Describes the plugin for Claude Code. The folder of the plugin is also a marketplace, from which Claude Code installs
 * the plugin.
 * @see https://code.claude.com/docs/en/plugins-reference
 */
function describeClaudePlugin(manifest: Manifest): PluginDescription {
  const serverConfig = {
    command: 'node',
    args: [formatMainFilePath('CLAUDE_PLUGIN_ROOT')],
    env: manifest.server.mcp_config.env,
  };
  return {
    folderName: 'claude-plugin',
    readmeParagraphs: [
      'This folder is a plugin for Claude Code. It needs Node 20.19 or newer, but not 21, 22.0 or 22.1.',
      `Run \`claude plugin install ${pluginName} --marketplace .\` in this folder, then enter your API key and the API address in Claude Code with \`/plugin\`, or switch on the demo data.`,
    ],
    jsonFiles: {
      '.claude-plugin/plugin.json': {
        ...describeMetadata(manifest),
        userConfig: manifest.user_config,
        mcpServers: { [pluginName]: serverConfig },
      },
      [marketplaceFile]: describeMarketplace(manifest),
    },
    iconPath: '.claude-plugin/icon.png',
  };
}

/**
 * Describes the extension for Gemini CLI. Gemini CLI asks for the settings during installation.
 * @see https://github.com/google-gemini/gemini-cli/blob/main/docs/extensions/reference.md
 */
function describeGeminiExtension(manifest: Manifest): PluginDescription {
  return {
    folderName: 'gemini-extension',
    readmeParagraphs: [
      'This folder is an extension for Gemini CLI. It needs Node 20.19 or newer, but not 21, 22.0 or 22.1.',
      'Run `gemini extensions install .` in this folder. Gemini CLI asks for your API key and the API address, or for demo data.',
    ],
    jsonFiles: {
      'gemini-extension.json': {
        name: pluginName,
        version: manifest.version,
        description: manifest.description,
        mcpServers: { [pluginName]: { command: 'node', args: [formatMainFilePath('extensionPath')] } },
        settings: [
          {
            name: 'API key',
            description: 'The key of your service; not needed for demo data',
            envVar: 'AD_LIBRARY_API_KEY',
            sensitive: true,
          },
          {
            name: 'API address',
            description:
              'Base address of the API of your service, such as https://api.example.com; not needed for demo data',
            envVar: 'AD_LIBRARY_BASE_URL',
          },
          {
            name: 'Demo data',
            description: 'Enter true to use generated, fictional ads, which cost nothing',
            envVar: 'AD_LIBRARY_DEMO',
          },
          {
            name: 'Credit budget',
            description: 'Maximum credits to spend until Gemini CLI is restarted; leave empty for no limit',
            envVar: 'AD_LIBRARY_CREDIT_BUDGET',
          },
          {
            name: 'Confirm credits',
            description:
              'Ask you before a call that may cost more credits than this, if Gemini CLI can show a form; leave empty to be asked before no call',
            envVar: 'AD_LIBRARY_CONFIRM_CREDITS',
          },
        ],
      },
    },
  };
}
