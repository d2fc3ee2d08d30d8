/** A schema as both SDKs export them. */
interface Schema {
  '~standard': { validate(value: unknown): unknown };
}

export type RequestSchemas = Readonly<Record<string, Schema>>;

/** The error object of JSON-RPC. */
export interface RequestError {
  code: number;
  message: string;
}

/** A read that cannot be made now. The first of the codes that JSON-RPC leaves to servers. */
export const refusedRead = -32_000;

/** Describes what is wrong with a request in one line: the SDKs dump their validation issues, or do not answer. */
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
