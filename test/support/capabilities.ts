/**
 * The capabilities of a client that displays MCP Apps. Test clients announce them, so that the server lists the board's
 * tools.
 */
export const mcpAppsCapabilities = {
  extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } },
};
