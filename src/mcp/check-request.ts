/** A schema as both SDK lines export them. */
interface Schema {
  '~standard': { validate(value: unknown): unknown };
}

export type RequestSchemas = Readonly<Record<string, Schema>>;

/** JSON-RPC's error for a request. */
export interface RequestError {
  code: number;
  message: string;
}

/** Says in a line what is wrong with a request: the SDKs answer with a dump of their validation, or not at all. */
export function checkRequest(schemas: RequestSchemas, request: { method: string }): RequestError | undefined {
  const schema = Object.hasOwn(schemas, request.method) ? schemas[request.method] : schemas.request;
  const [issue] = (schema?.['~standard'].validate(request) as Validated | undefined)?.issues ?? [];
  if (issue === undefined) return undefined;
  const path = (issue.path ?? []).join('.').slice(0, 100);
  const isParams = path.startsWith('params');
  return {
    code: isParams ? -32_602 : -32_600,
    message: `${isParams ? 'Invalid params' : 'Invalid request'}: ${path}: ${issue.message}.`,
  };
}

interface Validated {
  issues?: readonly { message: string; path?: readonly (string | number)[] }[];
}
