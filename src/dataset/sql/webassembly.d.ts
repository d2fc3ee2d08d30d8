/** Types for the parts of WebAssembly that this project uses. TypeScript declares them only for browsers. */
declare namespace WebAssembly {
  /** The compiled code of a module. Several threads can share it. */
  class Module {
    constructor(bytes: Uint8Array);
  }
  /** An instance of a module, with memory of its own. */
  class Instance {
    constructor(module: Module, imports: object);
  }
}
