import { replaceMarked } from './marked.ts';

/** The published package, as hosts start it. */
const published = { command: 'npx', args: ['-y', 'ad-library-mcp'] };
const demo = { ...published, args: [...published.args, '--demo'] };

type Link = (name: string, server: object) => string;

const vsCode: Link = (name, server) => {
  const address = `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, ...server }))}`;
  // Pages such as GitHub's leave out links that are not of the web.
  return `https://insiders.vscode.dev/redirect?url=${encodeURIComponent(address)}`;
};

const cursor: Link = (name, server) => {
  const config = Buffer.from(JSON.stringify(server)).toString('base64');
  return `https://cursor.com/install-mcp?name=${name}&config=${encodeURIComponent(config)}`;
};

const links = (host: string, link: Link): string =>
  `**${host}**: [add](${link('ad-library', published)}), or [add the demo](${link('ad-library-demo', demo)})`;

/** Links that add the server to a host with one click, as its documents describe them. */
export const withInstallLinks = (readme: string): string =>
  replaceMarked(
    readme,
    'install links',
    `${links('VS Code', vsCode)} · ${links('Cursor', cursor)}. They start the package from npm; set the key and the address where the host lists the server.`,
  );
