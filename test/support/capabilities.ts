/** The capabilities of a client that displays MCP Apps. With them, the server lists the board tools. */
export const mcpAppsCapabilities = {
  extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } },
};
