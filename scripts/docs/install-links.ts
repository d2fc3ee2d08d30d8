import { replaceMarked } from './marked.ts';

const url = 'http://127.0.0.1:3000/mcp';
const key = { type: 'promptString', id: 'ad-library-key', description: 'Ad Library API key', password: true };

/**
 * Links that add the server on this machine to a host, as the documents of the host describe them. Over HTTP, because
 * a link cannot know where a clone lies, and must not start a package of this name that somebody else published.
 */
export const vsCodeLink = (withKey: boolean): string => {
  const server = { name: 'ad-library', type: 'http', url };
  const secured = { ...server, headers: { Authorization: `Bearer \${input:${key.id}}` }, inputs: [key] };
  const address = `vscode:mcp/install?${encodeURIComponent(JSON.stringify(withKey ? secured : server))}`;
  // Pages such as GitHub's leave out links that are not of the web.
  return `https://insiders.vscode.dev/redirect?url=${encodeURIComponent(address)}`;
};

export const cursorLink = (withKey: boolean): string => {
  const secured = { url, headers: { Authorization: `Bearer \${env:AD_LIBRARY_API_KEY}` } };
  const config = Buffer.from(JSON.stringify(withKey ? secured : { url })).toString('base64');
  return `https://cursor.com/install-mcp?name=ad-library&config=${encodeURIComponent(config)}`;
};

const links = [
  `**VS Code**: [with your key](${vsCodeLink(true)}), which it asks you for`,
  `**Cursor**: [with your key](${cursorLink(true)}), which it reads from \`AD_LIBRARY_API_KEY\` in its own environment`,
  `**Beside \`http --demo\`**, without a key: [VS Code](${vsCodeLink(false)}), [Cursor](${cursorLink(false)})`,
];

export const withInstallLinks = (readme: string): string => replaceMarked(readme, 'install links', links.join(' · '));
