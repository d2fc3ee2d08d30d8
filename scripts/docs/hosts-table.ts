import { hosts } from '../../src/mcp/hosts.ts';
import { replaceMarked } from './marked.ts';

/** What `auto` does for each host, made from the records that the server reads. */
function hostsTable(): string {
  const rows = hosts.map(({ title, names, output, reads, links, maxResultTokens, source, day }) => {
    const form = output === 'both' ? 'text and data' : 'the text alone';
    const bound = maxResultTokens ? `, at most ${maxResultTokens.toLocaleString('en')} tokens` : '';
    const does = `${form}${bound}${links ? ', links to files' : ''}`;
    return `| ${title} | ${names.map((name) => `\`${name}\``).join(', ')} | ${reads} | ${does} | [${day}](${source}) |`;
  });
  const head = ['| host | connects as | reads | gets | from |', '|---|---|---|---|---|'];
  return [...head, ...rows, '| any other | | not known | text and data | |'].join('\n');
}

export const withHosts = (page: string): string => replaceMarked(page, 'hosts', hostsTable());
