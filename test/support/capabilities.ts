/** What a client announces that draws MCP Apps. The clients of tests announce it, so that they get the board's tools. */
export const mcpAppsCapabilities = {
  extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } },
};
