import type { ToolResult } from '../../src/mcp/call-tool.ts';
import type { Catalog } from '../../src/mcp/catalog.ts';

/** What the conformance scenarios call by name: content of every kind passes through the endpoint unchanged. */
const image = {
  type: 'image',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==',
  mimeType: 'image/png',
};
const audio = {
  type: 'audio',
  data: 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==',
  mimeType: 'audio/wav',
};
const resource = {
  type: 'resource',
  resource: { uri: 'test://resource', mimeType: 'text/plain', text: 'A resource.' },
};
const text = { type: 'text', text: 'This is a simple text response for testing.' };

const contents: Record<string, object[]> = {
  test_simple_text: [text],
  test_image_content: [image],
  test_audio_content: [audio],
  test_embedded_resource: [resource],
  test_multiple_content_types: [text, image, resource],
};

const person = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object' as const,
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

const prompts: Record<string, (values: Record<string, string>) => object> = {
  test_simple_prompt: () => ({ type: 'text', text: 'This is a simple prompt for testing.' }),
  test_prompt_with_arguments: ({ arg1, arg2 }) => ({
    type: 'text',
    text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  }),
  test_prompt_with_embedded_resource: ({ resourceUri }) => ({
    ...resource,
    resource: { ...resource.resource, uri: resourceUri },
  }),
  test_prompt_with_image: () => image,
};

/** The real catalogue, with the fixtures beside the tools. */
export function withFixtures(catalog: Catalog): Catalog {
  const annotations = {
    title: 'Fixture',
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  };
  const listed = { title: 'Fixture', description: 'For conformance tests', annotations };
  const empty = { type: 'object' as const, properties: {} };
  const plain = Object.keys(contents).map((name) => ({ ...listed, name, inputSchema: empty }));
  return {
    ...catalog,
    tools: async () => [
      ...(await catalog.tools()),
      ...plain,
      { ...listed, name: 'json_schema_2020_12_tool', inputSchema: person },
    ],
    callTool: async (call) => {
      const content = contents[call.name];
      return content ? ({ content } as ToolResult) : catalog.callTool(call);
    },
    getPrompt: (request, invalid) => {
      const write = prompts[request.name];
      if (!write) return catalog.getPrompt(request, invalid);
      const content = write(request.arguments ?? {});
      return {
        description: 'A fixture',
        messages: [{ role: 'user', content: content as { type: 'text'; text: string } }],
      };
    },
  };
}
