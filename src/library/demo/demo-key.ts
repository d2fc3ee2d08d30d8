/** The API key of every library with demo data. It opens nothing else. */
export const demoKey = 'svc_live_7b1606a0c0a7a6acb0920d588fa7315979647cfd';
