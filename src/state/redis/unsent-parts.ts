/** For all tenants together. */
const MAX_BYTES = 16 * 1024 * 1024;

/** What waits until Redis can be reached, in bounded memory: the first to come are the last to go. */
export class UnsentParts {
  readonly #parts = new Map<string, Buffer[]>();
  #bytes = 0;

  names(): string[] {
    return [...this.#parts.keys()];
  }

  /** @returns false if there is no room */
  add(name: string, part: Buffer): boolean {
    if (this.#bytes + part.length > MAX_BYTES) return false;
    this.#bytes += part.length;
    const parts = this.#parts.get(name) ?? [];
    parts.push(part);
    this.#parts.set(name, parts);
    return true;
  }

  take(name: string): Buffer[] {
    const parts = this.#parts.get(name) ?? [];
    this.#parts.delete(name);
    for (const { length } of parts) this.#bytes -= length;
    return parts;
  }
}
