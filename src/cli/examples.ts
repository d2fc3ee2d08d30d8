/** Examples in the help of each command, by its words. Tests run them all. */
export const examples: Readonly<Record<string, readonly string[]>> = {
  '': ['ad-library-mcp --demo', 'AD_LIBRARY_API_KEY=svc_live_… ad-library-mcp --base-url https://api.example'],
  stdio: ['ad-library-mcp stdio --demo', 'ad-library-mcp stdio --tools search_ads,get_ad --read-only'],
  http: [
    'ad-library-mcp http --demo',
    'ad-library-mcp http --base-url https://api.example.com --port 8080',
    'ad-library-mcp http --demo --host 0.0.0.0 --allowed-hosts ads.example.com',
  ],
  library: [
    'ad-library-mcp library import ads.jsonl',
    'ad-library-mcp library key create --name Laptop',
    'ad-library-mcp library serve',
  ],
  files: ['ad-library-mcp files clear --files my-ads'],
  'files clear': ['ad-library-mcp files clear --files my-ads'],
  'library filters': ['ad-library-mcp library filters > filters.json'],
  'library serve': [
    'ad-library-mcp library serve --demo',
    'ad-library-mcp library serve --database ads.db --port 4000',
  ],
  'library import': [
    'ad-library-mcp library import ads.jsonl pages.jsonl --database ads.db',
    'cat ads.jsonl | ad-library-mcp library import -',
  ],
  'library key': ['ad-library-mcp library key create --name Laptop', 'ad-library-mcp library key list'],
  'library key create': [
    'ad-library-mcp library key create --name Laptop --database ads.db',
    'ad-library-mcp library key create --name Archive --unmetered',
    'ad-library-mcp library key create --scopes ads:read,pages:read --credits 500',
  ],
  'library key list': ['ad-library-mcp library key list --database ads.db'],
  'library key revoke': ['ad-library-mcp library key revoke svc_live_1a2b3c4d'],
};
