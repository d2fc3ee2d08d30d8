/**
 * The hosts to test. For each host, this file contains the npm package, the command that runs the host, and the steps
 * from docs/hosts.md that add the server to the host.
 */

interface TestEnvironment {
  /** The base URL of the local server that acts as the language model of the host. */
  modelUrl: string;
  /** The path of the server's main file, which docs/hosts.md calls `/path/to/ad-library-mcp/dist/main.js`. */
  mainFile: string;
  /** Returns the path of the folder of a plugin in `dist-plugins`, e.g. for the plugin `claude-plugin`. */
  getPluginFolder(pluginName: string): string;
}

interface HostCommand {
  args: string[];
  input?: string;
}

/** One of the ways to add the server to a host, e.g. with a command or as a plugin. */
interface HostSetup {
  /**
   * The files to write before the commands run. Paths are relative to the home folder, or to the working folder if they
   * begin with `./`.
   */
  files?: Record<string, object | string>;
  /** The commands that add the server to the host. They run before the model gets a question. */
  commands?: HostCommand[];
  /** The arguments with which the host's program asks its model a question. */
  questionArgs: string[];
}

/**
 * The outcome for the picture of a tool result. `dropped` means that the host did not pass the picture on to the model.
 */
export type PictureOutcome = 'a picture' | 'dropped' | 'base64 text' | 'left out by the server';

/** The outcome for the link to a file in a tool result. `dropped` means that the host did not pass the link on. */
export type LinkOutcome = 'a link' | 'dropped' | 'left out by the server';

/** The part of the server's instructions that the model receives. */
export type InstructionsOutcome = 'whole' | 'beginning' | 'none';

/** The parts of tool results, the instructions and the tools that a host is expected to pass on to its model. */
interface ExpectedOutcome {
  pictures: PictureOutcome;
  /** The expected outcome for links to files. The default is `left out by the server`. */
  links?: LinkOutcome;
  instructions: InstructionsOutcome;
  /**
   * `all` if the model receives all tools at once, or `found by a search` if it receives only tools that it searched
   * for.
   */
  tools: 'all' | 'found by a search';
}

export interface HostUnderTest {
  /** The title of the host in `src/mcp/hosts.json`, e.g. `Claude Code`. */
  title: string;
  /** The npm package of the host, e.g. `@openai/codex`. */
  packageName: string;
  /** The version to install if the newest version cannot be installed. */
  packageVersion?: string;
  /** The path of the program in the installation folder, e.g. `node_modules/.bin/codex`. */
  programPath: string;
  getVariables(environment: TestEnvironment): Record<string, string>;
  getSetups(environment: TestEnvironment): { command: HostSetup; plugin?: HostSetup };
  expectedOutcome: ExpectedOutcome;
}

const question = 'Research ads';
const demoVariables = { AD_LIBRARY_DEMO: 'true' };
const marketplacePlugin = 'ad-library@ad-library-mcp';

/** Builds the JSON configuration from docs/hosts.md that many hosts accept. */
const buildServerConfig = ({ mainFile }: TestEnvironment) => ({
  mcpServers: { 'ad-library': { command: 'node', args: [mainFile], env: demoVariables } },
});

/** Builds the configuration of opencode. Kilo CLI accepts the same format. */
const buildOpenCodeConfig = ({ modelUrl, mainFile }: TestEnvironment) => {
  const model = {
    name: 'Scripted',
    attachment: true,
    tool_call: true,
    modalities: { input: ['text', 'image'], output: ['text'] },
    limit: { context: 400_000, output: 8000 },
  };
  return {
    autoupdate: false,
    share: 'disabled',
    provider: {
      scripted: {
        npm: '@ai-sdk/openai-compatible',
        name: 'Scripted',
        options: { baseURL: `${modelUrl}/v1`, apiKey: 'invented' },
        models: { 'scripted-model': model },
      },
    },
    model: 'scripted/scripted-model',
    small_model: 'scripted/scripted-model',
    mcp: { 'ad-library': { type: 'local', command: ['node', mainFile], environment: demoVariables } },
  };
};

export const hostsUnderTest: Record<string, HostUnderTest> = {
  claude: {
    title: 'Claude Code',
    packageName: '@anthropic-ai/claude-code',
    programPath: 'node_modules/.bin/claude',
    getVariables: ({ modelUrl }) => ({
      ANTHROPIC_BASE_URL: modelUrl,
      ANTHROPIC_API_KEY: 'sk-ant-invented',
      DISABLE_AUTOUPDATER: '1',
    }),
    getSetups: ({ mainFile, getPluginFolder }) => ({
      command: {
        commands: [{ args: ['mcp', 'add', 'ad-library', '-e', 'AD_LIBRARY_DEMO=true', '--', 'node', mainFile] }],
        questionArgs: ['-p', question, '--allowedTools', 'mcp__ad-library'],
      },
      plugin: {
        commands: [
          {
            args: [
              ...['plugin', 'install', 'ad-library', '--marketplace', getPluginFolder('claude-plugin')],
              ...['--config', 'demo=true'],
            ],
          },
        ],
        questionArgs: ['-p', question, '--allowedTools', 'mcp__plugin_ad-library_ad-library'],
      },
    }),
    expectedOutcome: { pictures: 'a picture', links: 'a link', instructions: 'whole', tools: 'found by a search' },
  },
  codex: {
    title: 'Codex',
    packageName: '@openai/codex',
    programPath: 'node_modules/.bin/codex',
    getVariables: () => ({ SCRIPTED_KEY: 'invented' }),
    getSetups: ({ modelUrl, mainFile, getPluginFolder }) => {
      const lines = [
        'model = "gpt-5.5"',
        'model_provider = "scripted"',
        '[model_providers.scripted]',
        'name = "scripted"',
        `base_url = "${modelUrl}/v1"`,
        'env_key = "SCRIPTED_KEY"',
        'wire_api = "responses"',
      ];
      const files = { '.codex/config.toml': `${lines.join('\n')}\n` };
      const execArgs = ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', question];
      return {
        command: {
          files,
          commands: [{ args: ['mcp', 'add', 'ad-library', '--env', 'AD_LIBRARY_DEMO=true', '--', 'node', mainFile] }],
          // Mark the server as required. Otherwise Codex does not wait for the server to start before it sends the
          // first question to the model.
          questionArgs: ['-c', 'mcp_servers.ad-library.required=true', ...execArgs],
        },
        plugin: {
          files,
          commands: [
            { args: ['plugin', 'marketplace', 'add', getPluginFolder('agent-plugin')] },
            { args: ['plugin', 'add', marketplacePlugin] },
          ],
          questionArgs: execArgs,
        },
      };
    },
    expectedOutcome: { pictures: 'a picture', instructions: 'whole', tools: 'found by a search' },
  },
  copilot: {
    title: 'Copilot CLI',
    packageName: '@github/copilot',
    programPath: 'node_modules/.bin/copilot',
    getVariables: ({ modelUrl }) => ({
      COPILOT_PROVIDER_BASE_URL: `${modelUrl}/v1`,
      COPILOT_PROVIDER_TYPE: 'openai',
      COPILOT_PROVIDER_API_KEY: 'invented',
      COPILOT_MODEL: 'gpt-5.4',
      COPILOT_OFFLINE: 'true',
    }),
    getSetups: ({ mainFile, getPluginFolder }) => {
      const promptArgs = ['-p', question, '--allow-all-tools'];
      return {
        command: {
          commands: [{ args: ['mcp', 'add', 'ad-library', '--env', 'AD_LIBRARY_DEMO=true', '--', 'node', mainFile] }],
          questionArgs: promptArgs,
        },
        plugin: {
          commands: [
            { args: ['plugin', 'marketplace', 'add', getPluginFolder('agent-plugin')] },
            { args: ['plugin', 'install', marketplacePlugin] },
          ],
          questionArgs: promptArgs,
        },
      };
    },
    expectedOutcome: { pictures: 'left out by the server', instructions: 'none', tools: 'all' },
  },
  gemini: {
    title: 'Gemini CLI',
    packageName: '@google/gemini-cli',
    programPath: 'node_modules/.bin/gemini',
    getVariables: ({ modelUrl }) => ({
      GEMINI_API_KEY: 'invented',
      GOOGLE_GEMINI_BASE_URL: modelUrl,
      GEMINI_TELEMETRY_ENABLED: 'false',
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
    }),
    getSetups: ({ mainFile, getPluginFolder }) => {
      const settings = {
        security: { auth: { selectedType: 'gemini-api-key' } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      };
      const files = { '.gemini/settings.json': settings };
      const promptArgs = ['-m', 'gemini-2.5-pro', '-p', question, '--approval-mode', 'yolo'];
      const add = ['mcp', 'add', '-s', 'user', '-e', 'AD_LIBRARY_DEMO=true', 'ad-library', 'node', mainFile];
      return {
        command: { files, commands: [{ args: add }], questionArgs: promptArgs },
        plugin: {
          files,
          commands: [
            { args: ['extensions', 'install', getPluginFolder('gemini-extension'), '--consent', '--skip-settings'] },
            { args: ['extensions', 'config', 'ad-library', 'AD_LIBRARY_DEMO'], input: 'true\n' },
          ],
          questionArgs: promptArgs,
        },
      };
    },
    expectedOutcome: { pictures: 'a picture', instructions: 'whole', tools: 'all' },
  },
  opencode: {
    title: 'opencode',
    packageName: 'opencode-ai',
    programPath: 'node_modules/.bin/opencode',
    getVariables: () => ({}),
    getSetups: (environment) => ({
      command: { files: { './opencode.json': buildOpenCodeConfig(environment) }, questionArgs: ['run', question] },
    }),
    expectedOutcome: { pictures: 'a picture', instructions: 'whole', tools: 'all' },
  },
  kilo: {
    title: 'Kilo CLI',
    packageName: '@kilocode/cli',
    // Version 7.8.1 cannot be installed, because some of its packages are missing on npm.
    packageVersion: '7.7.7',
    programPath: 'node_modules/.bin/kilo',
    getVariables: () => ({}),
    getSetups: (environment) => ({
      command: {
        files: { './kilo.json': buildOpenCodeConfig(environment) },
        questionArgs: ['run', '--auto', question],
      },
    }),
    expectedOutcome: { pictures: 'a picture', instructions: 'whole', tools: 'all' },
  },
  qwen: {
    title: 'Qwen Code',
    packageName: '@qwen-code/qwen-code',
    programPath: 'node_modules/.bin/qwen',
    getVariables: ({ modelUrl }) => ({
      OPENAI_API_KEY: 'invented',
      OPENAI_BASE_URL: `${modelUrl}/v1`,
      OPENAI_MODEL: 'scripted-model',
    }),
    getSetups: ({ mainFile }) => ({
      command: {
        files: { '.qwen/settings.json': { privacy: { usageStatisticsEnabled: false } } },
        commands: [
          { args: ['mcp', 'add', '-s', 'user', '-e', 'AD_LIBRARY_DEMO=true', 'ad-library', 'node', mainFile] },
        ],
        questionArgs: ['--auth-type', 'openai', '--approval-mode', 'yolo', '-p', question],
      },
    }),
    expectedOutcome: { pictures: 'left out by the server', instructions: 'whole', tools: 'found by a search' },
  },
  cline: {
    title: 'Cline CLI',
    packageName: 'cline',
    programPath: 'node_modules/.bin/cline',
    getVariables: () => ({}),
    getSetups: (environment) => ({
      command: {
        files: { '.cline/data/settings/cline_mcp_settings.json': buildServerConfig(environment) },
        commands: [
          {
            args: [
              ...['auth', '-p', 'openai', '-k', 'invented', '-m', 'scripted-model'],
              ...['-b', `${environment.modelUrl}/v1`],
            ],
          },
        ],
        questionArgs: ['-P', 'openai', '-m', 'scripted-model', '-t', '100', question],
      },
    }),
    expectedOutcome: { pictures: 'left out by the server', instructions: 'none', tools: 'all' },
  },
  continue: {
    title: 'Continue CLI',
    packageName: '@continuedev/cli',
    programPath: 'node_modules/.bin/cn',
    getVariables: () => ({ CONTINUE_TELEMETRY_ENABLED: '0' }),
    getSetups: ({ modelUrl, mainFile }) => {
      const model = {
        ...{ name: 'scripted', provider: 'openai', model: 'gpt-4o', apiBase: `${modelUrl}/v1`, apiKey: 'invented' },
        ...{ roles: ['chat', 'edit', 'apply'], capabilities: ['tool_use', 'image_input'] },
      };
      const server = { name: 'ad-library', command: 'node', args: [mainFile], env: demoVariables };
      const config = { name: 'Bench', version: '0.0.1', schema: 'v1', models: [model], mcpServers: [server] };
      return {
        // The host reads a YAML file. JSON is valid YAML, so write the configuration as JSON.
        command: {
          files: { './config.yaml': config },
          questionArgs: ['--config', 'config.yaml', '--auto', '-p', question],
        },
      };
    },
    expectedOutcome: { pictures: 'left out by the server', instructions: 'none', tools: 'all' },
  },
};
