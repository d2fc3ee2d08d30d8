/**
 * Creates the OAuth metadata documents that tell clients how to sign in: one for the protected resource (RFC 9728), and
 * one for the authorization server (RFC 8414).
 */
export function createOAuthMetadata(publicUrl: string) {
  const resource = `${publicUrl}/mcp`;
  const resourcePath = '/.well-known/oauth-protected-resource';
  const resourceDocument = { resource, authorization_servers: [publicUrl], bearer_methods_supported: ['header'] };
  const serverDocument = {
    issuer: publicUrl,
    authorization_endpoint: `${publicUrl}/authorize`,
    token_endpoint: `${publicUrl}/token`,
    registration_endpoint: `${publicUrl}/register`,
    revocation_endpoint: `${publicUrl}/revoke`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
  };
  return {
    /** The URL of the protected resource, i.e. of the MCP endpoint. */
    resource,
    /**
     * The metadata documents, each under its URL path. The document of the protected resource is also available under a
     * path that ends with `/mcp`, because some MCP hosts look for it there.
     */
    documents: {
      [resourcePath]: resourceDocument,
      [`${resourcePath}/mcp`]: resourceDocument,
      '/.well-known/oauth-authorization-server': serverDocument,
    },
    /**
     * The parameter of the `WWW-Authenticate` header that tells clients where to find the metadata (RFC 9728, section
     * 5.1).
     */
    challenge: `resource_metadata="${publicUrl}${resourcePath}/mcp"`,
  };
}
