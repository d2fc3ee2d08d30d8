import { encode } from 'gpt-tokenizer';
import type { InstructionsOutcome, LinkOutcome, PictureOutcome } from './catalog.ts';
import { listMessages, listOfferedTools, type ModelRequest } from './scripted-model.ts';

/** A recorded MCP message between a host and the server. */
export interface RecordedMessage {
  from: 'host' | 'server';
  // biome-ignore lint/suspicious/noExplicitAny: messages of all revisions.
  message: any;
}

/** The parts of a tool result that the server sent or the model received: text, structured data, both or neither. */
export type ResultParts = 'text' | 'data' | 'both' | 'neither';

/**
 * The measurements of one run: which parts of the server's messages reached the model of the host, and how the host
 * behaved.
 */
export interface HostMeasurement {
  /** The client name and the protocol revision that the host announces, e.g. `claude-code` and `2025-11-25`. */
  clientName: string;
  revision: string;
  /**
   * The parts of a tool result: `sent` for the parts that the server sent, and `read` for the parts that the model
   * received.
   */
  sent: ResultParts;
  read: ResultParts;
  /**
   * The length of a list of ten ads in tokens: `listTokens` in the host's message to the model, and `sentTokens` in the
   * text that the server sent.
   */
  listTokens: number;
  sentTokens: number;
  pictures: PictureOutcome;
  /** True if the model received the error message of a failed tool call. */
  readsErrors: boolean;
  links: LinkOutcome;
  /** The number of tools that the server listed. */
  listedToolCount: number;
  /** The number of our tools whose schemas the model received during the run. */
  receivedToolCount: number;
  /** The number of our tools that a single request to the model contains more than once, e.g. under two names. */
  repeatedToolCount: number;
  instructions: InstructionsOutcome;
  /** True if the model received the path or the link at which a report is stored. */
  readsFileLocation: boolean;
  /** True if the host requested the list of resources again after the server announced that a new report exists. */
  followsAnnouncements: boolean;
}

interface RecordedRun {
  requests: readonly ModelRequest[];
  messages: readonly RecordedMessage[];
  toolNames: readonly string[];
}

/**
 * Matches a base64-encoded picture. Text with fewer than 1,500 characters does not match, so that ordinary words and
 * ids are not mistaken for a picture.
 */
const base64Pattern = /[A-Za-z0-9+/=]{1500,}/g;
const picturePattern = /"type":"(?:input_image|image_url|image)"|"inlineData"/;

export function measureRun({ requests, messages, toolNames }: RecordedRun): HostMeasurement {
  const resultsByTool = collectFirstResults(messages);
  const resultTexts = toolNames.map((name) => resultsByTool.get(name)?.text);
  const [adList, sheet, errorResult, reportResult] = findForwardedResults(requests, resultTexts);
  const [listName = '', viewName = '', , reportName = ''] = toolNames;
  const sentList = resultsByTool.get(listName);
  const { clientName, revision } = findClient(messages);
  const requestsJson = JSON.stringify(requests.map(({ body }) => body));
  return {
    clientName,
    revision,
    sent: getResultParts(sentList?.text !== undefined, sentList?.data !== undefined),
    read: getResultParts(containsEncodedText(adList, sentList?.text), containsEncodedText(adList, sentList?.data)),
    listTokens: encode((adList ?? '').replace(base64Pattern, '')).length,
    sentTokens: encode(sentList?.text ?? '').length,
    pictures: findPictureOutcome(sheet, resultsByTool.get(viewName)?.hasPicture === true),
    readsErrors: errorResult !== undefined,
    links: findLinkOutcome(reportResult, resultsByTool.get(reportName)),
    ...countTools(requests, messages),
    instructions: findInstructionsOutcome(messages, requestsJson),
    readsFileLocation: /ads(?:-\d+)?\.html/.test(reportResult ?? ''),
    followsAnnouncements: hasFollowedAnnouncement(messages),
  };
}

const getResultParts = (hasText: boolean, hasData: boolean): ResultParts =>
  hasText && hasData ? 'both' : hasText ? 'text' : hasData ? 'data' : 'neither';

interface CallResult {
  text: string;
  data?: string;
  hasPicture: boolean;
  /** The URI of the file that the result links to. Undefined if the result contains no link. */
  linkUri: string | undefined;
}

/** Returns the first result of each tool, keyed by tool name. */
function collectFirstResults(messages: readonly RecordedMessage[]): Map<string, CallResult> {
  const resultsByTool = new Map<string, CallResult>();
  for (const { from, message } of messages) {
    if (from !== 'host' || message.method !== 'tools/call' || resultsByTool.has(message.params.name)) continue;
    const response = messages.find((other) => other.from === 'server' && other.message.id === message.id);
    if (!response?.message.result) continue;
    const { content, structuredContent } = response.message.result as {
      content: Content[];
      structuredContent?: object;
    };
    resultsByTool.set(message.params.name, {
      text: content.map(({ text }) => text ?? '').join('\n'),
      ...(structuredContent && { data: JSON.stringify(structuredContent) }),
      hasPicture: content.some(({ type }) => type === 'image'),
      linkUri: content.find(({ type }) => type === 'resource_link')?.uri,
    });
  }
  return resultsByTool;
}

interface Content {
  type: string;
  text?: string;
  uri?: string;
}

/**
 * For each result text, finds the messages in which the host passed the result on to the model, as JSON. Returns them
 * in the order of `resultTexts`, with undefined for each result that the host did not pass on.
 */
function findForwardedResults(
  requests: readonly ModelRequest[],
  resultTexts: readonly (string | undefined)[],
): (string | undefined)[] {
  const conversation = requests.filter((request) => listOfferedTools(request).length > 3);
  const additions = conversation.map((request, requestIndex) => {
    const previousRequest = conversation[requestIndex - 1];
    const addedMessages = listMessages(request).slice(previousRequest ? listMessages(previousRequest).length : 0);
    return JSON.stringify(
      addedMessages.filter(({ role }: { role?: string }) => role !== 'assistant' && role !== 'model'),
    );
  });
  let firstIndex = 0;
  return resultTexts.map((text) => {
    const additionIndex = additions.findIndex(
      (json, index) => index >= firstIndex && text !== undefined && containsToolResult(json, text),
    );
    if (additionIndex < 0) return undefined;
    firstIndex = additionIndex + 1;
    return additions[additionIndex];
  });
}

/**
 * Returns true if the messages contain the tool result, that is, the longest line of its text or the first ad id in the
 * text. The id is sufficient, because a host may pass on only the structured data.
 */
function containsToolResult(messagesJson: string, resultText: string): boolean {
  const [firstId] = resultText.match(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}/) ?? [];
  // Ignore lines with the note about demo data. Every result and the instructions contain this note, so it cannot
  // identify a result.
  const lines = resultText.split('\n').filter((line) => !line.includes('DEMO DATA'));
  const longestLine = lines.reduce((longest, line) => (line.length > longest.length ? line : longest), '');
  return (
    containsEncodedText(messagesJson, longestLine.slice(0, 60)) ||
    (firstId !== undefined && messagesJson.includes(firstId))
  );
}

/**
 * Returns true if the JSON contains the text, encoded as JSON one to three times. Hosts differ in how often they encode
 * a text.
 */
function containsEncodedText(json: string | undefined, text: string | undefined): boolean {
  if (json === undefined || text === undefined) return false;
  let encodedText = text;
  for (let level = 0; level < 3; level += 1) {
    encodedText = JSON.stringify(encodedText).slice(1, -1);
    if (json.includes(encodedText)) return true;
  }
  return false;
}

function findPictureOutcome(message: string | undefined, wasSent: boolean): PictureOutcome {
  if (!wasSent) return 'left out by the server';
  if (message === undefined) return 'dropped';
  if (picturePattern.test(message)) return 'a picture';
  return base64Pattern.test(message) ? 'base64 text' : 'dropped';
}

/**
 * Determines whether the model received the link to a file. The text of the tool result also contains the URI of the
 * file. If the host's message contains the URI more often than this text, the host passed on the link itself.
 */
function findLinkOutcome(message = '', result: CallResult | undefined): LinkOutcome {
  if (result?.linkUri === undefined) return 'left out by the server';
  const countUris = (text: string) => text.split(result.linkUri ?? '').length - 1;
  return countUris(message) > countUris(result.text) ? 'a link' : 'dropped';
}

/**
 * Counts the tools that the server listed, and how many of them the model received. Many hosts add a prefix to the tool
 * names, e.g. `mcp__ad-library__search_ads`.
 */
function countTools(requests: readonly ModelRequest[], messages: readonly RecordedMessage[]) {
  const listedTools = messages.flatMap(({ message }) => message.result?.tools ?? []);
  const ourToolNames = [...new Set(listedTools.map(({ name }: { name: string }) => name))];
  const isOurTool = (ourName: string, name: string) => new RegExp(`(?:^|[^a-z])${ourName}$`).test(name);
  const offeredNames = requests.map((request) => listOfferedTools(request).map(({ name }) => name));
  return {
    listedToolCount: ourToolNames.length,
    receivedToolCount: ourToolNames.filter((ourName) => offeredNames.flat().some((name) => isOurTool(ourName, name)))
      .length,
    repeatedToolCount: ourToolNames.filter((ourName) =>
      offeredNames.some((names) => names.filter((name) => isOurTool(ourName, name)).length > 1),
    ).length,
  };
}

function findClient(messages: readonly RecordedMessage[]) {
  const infos = messages.flatMap(({ from, message }) => {
    const { params } = message;
    const meta = params?._meta ?? {};
    const info = params?.clientInfo ?? meta['io.modelcontextprotocol/clientInfo'];
    const version = params?.protocolVersion ?? meta['io.modelcontextprotocol/protocolVersion'];
    return from === 'host' && info ? [{ clientName: String(info.name), revision: String(version) }] : [];
  });
  return infos.at(-1) ?? { clientName: 'unknown', revision: 'unknown' };
}

function findInstructionsOutcome(messages: readonly RecordedMessage[], requestsJson: string): InstructionsOutcome {
  const instructions: string = messages.find(({ message }) => message.result?.instructions)?.message.result
    .instructions;
  if (instructions === undefined) return 'none';
  const lines = instructions.trim().split('\n');
  const [firstLine, lastLine] = [lines[0]?.slice(0, 60), lines.at(-1)?.slice(-60)];
  if (!containsEncodedText(requestsJson, firstLine)) return 'none';
  return containsEncodedText(requestsJson, lastLine) ? 'whole' : 'beginning';
}

function hasFollowedAnnouncement(messages: readonly RecordedMessage[]): boolean {
  const announcementIndex = messages.findIndex(
    ({ message }) => message.method === 'notifications/resources/list_changed',
  );
  return (
    announcementIndex >= 0 &&
    messages.slice(announcementIndex).some(({ message }) => message.method === 'resources/list')
  );
}
