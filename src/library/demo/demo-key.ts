/** The public API key of every demo library. No other library accepts it. */
export const demoKey = 'svc_live_7b1606a0c0a7a6acb0920d588fa7315979647cfd';
