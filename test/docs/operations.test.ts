import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Hono } from 'hono';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { errorKinds } from '../../src/api/errors.ts';
import { findUnknownVariables } from '../../src/config/read-config.ts';
import { createMetrics } from '../../src/transports/http/metrics.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { pages, root } from './pages.ts';

const folder = join(root, 'docs/operations');
const files = readdirSync(folder);
const readDoc = (file: string) => readFileSync(join(folder, file), 'utf8');
const composeFile = readFileSync(join(root, 'compose.yaml'), 'utf8');

test.each(files)('the file docs/operations/%s is linked from a page of the documentation', (file) => {
  expect(pages.some(({ file: page, text }) => page.startsWith('docs/') && text.includes(`](operations/${file})`))).toBe(
    true,
  );
});

test.each([...files.map((file) => ({ file, text: readDoc(file) })), { file: 'compose.yaml', text: composeFile }])(
  'every setting that the file $file mentions exists',
  ({ text }) => {
    const names = [...text.matchAll(/\bAD_LIBRARY_[A-Z_]+\b/g)].map(([name]) => name);
    expect(findUnknownVariables(Object.fromEntries(names.map((name) => [name, ''])))).toEqual([]);
  },
);

test('compose.yaml mounts the file of the search filters at the path that the server reads', () => {
  const { 'x-server': server, services } = parse(composeFile, { merge: true });
  const [mount] = server.volumes;
  const path = server.environment.AD_LIBRARY_SEARCH_FILTERS.replace(/^\$\{AD_LIBRARY_SEARCH_FILTERS:\+(.*)\}$/, '$1');
  expect(mount).toMatchObject({ type: 'bind', source: '${AD_LIBRARY_SEARCH_FILTERS:-/dev/null}', target: path });
  for (const name of ['ad-library-mcp', 'sign-in', 'replica-1', 'archive-server']) {
    expect(services[name].volumes).toContainEqual(mount);
    expect(services[name].environment).toMatchObject({ AD_LIBRARY_SEARCH_FILTERS: expect.stringContaining(path) });
  }
});

test('compose.yaml passes the picture hosts to every service that fetches pictures', () => {
  const { services } = parse(composeFile, { merge: true });
  for (const name of ['ad-library-mcp', 'sign-in', 'replica-1', 'archive', 'archive-server'])
    expect(services[name].environment).toMatchObject({ AD_LIBRARY_MEDIA_HOSTS: '${AD_LIBRARY_MEDIA_HOSTS:-}' });
});

describe('The example files for metrics', () => {
  const dashboard = JSON.parse(readDoc('grafana-dashboard.json'));
  const { groups } = parse(readDoc('prometheus-rules.yml'));
  const alerts: { alert: string; expr: string }[] = groups.flatMap(({ rules }: { rules: [] }) => rules);
  const panels: { title: string; targets: { expr: string }[] }[] = dashboard.panels;
  const expressions = [
    ...alerts.map(({ alert, expr }) => ({ title: alert, expr })),
    ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr }))),
  ];
  let page = '';

  beforeAll(async () => {
    const metrics = createMetrics(['whoami', 'get_ad']);
    metrics.addCallGauges(() => ({ running: 0, waiting: 0 }));
    metrics.addReplicaStateGauge(() => true);
    metrics.onCall({ tool: 'whoami', tenantId: 'one', ms: 1, charged: 1 });
    const app = new Hono().use('/mcp', metrics.countResponse).get('/', metrics.serveMetrics);
    await app.request('/mcp');
    page = await (await app.request('/')).text();
  });

  test.each(expressions)(
    'the metrics expression of the alert or panel "$title" uses only existing metrics and labels',
    ({ expr }) => {
      const servedNames = new Set([...page.matchAll(/^([a-z]\w+)[ {]/gm)].map(([, name]) => name));
      const names = [...expr.matchAll(/\b(?:ad_library|nodejs|process)_\w+/g)].map(([name]) => name);
      expect(names.filter((name) => !servedNames.has(name))).toEqual([]);
      expect(names.length > 0 || /^(?:sum\()?up\{/.test(expr)).toBe(true);
      const labels = [...expr.matchAll(/([a-z]\w*)(?:=~|!=|=)"/g), ...expr.matchAll(/\bby \((\w+)/g)];
      // Prometheus adds the labels `job` and `instance` to every metric.
      const servedLabels = new Set(['job', 'instance', ...[...page.matchAll(/(\w+)="/g)].map(([, label]) => label)]);
      expect(labels.map(([, label]) => label).filter((label) => !servedLabels.has(label))).toEqual([]);
    },
  );

  test('every call outcome in a metrics expression is an existing error kind', () => {
    const outcomes = expressions.flatMap(({ expr }) =>
      [...expr.matchAll(/outcome!?=~?"([\w|]+)"/g)].flatMap(([, words = '']) => words.split('|')),
    );
    expect(outcomes.length).toBeGreaterThan(4);
    expect(['ok', ...errorKinds]).toEqual(expect.arrayContaining(outcomes));
  });

  test('the error and charge counters of each tool start at 0, so that alerts notice the first increase', () => {
    expect(page).toContain('ad_library_call_seconds_count{tool="get_ad",outcome="internal"} 0\n');
    expect(page).toContain('ad_library_credits_charged_total{tool="get_ad"} 0\n');
  });

  test('the dashboard, the alerts and the scrape configuration use the same job name', () => {
    const { scrape_configs: jobs, rule_files: ruleFiles } = parse(readDoc('prometheus.yml'));
    const names = expressions.flatMap(({ expr }) => [...expr.matchAll(/job="([^"]+)"/g)].map(([, job]) => job));
    expect([...new Set(names)]).toEqual(jobs.map(({ job_name: name }: { job_name: string }) => name));
    expect(ruleFiles).toEqual(['prometheus-rules.yml']);
  });

  test('the page docs/replicas.md names only alerts that exist', () => {
    const text = readFileSync(join(root, 'docs/replicas.md'), 'utf8');
    const named = [...text.matchAll(/`(AdLibrary\w+)`/g)].map(([, name]) => name);
    expect(named).not.toEqual([]);
    expect(alerts.map(({ alert }) => alert)).toEqual(expect.arrayContaining(named));
  });
});

describe('kubernetes.yaml', () => {
  const documents = parseAllDocuments(readDoc('kubernetes.yaml'));
  const resources = documents.map((document) => document.toJS());
  const find = (kind: string) => resources.find((resource) => resource.kind === kind);
  const { template, selector, replicas } = find('Deployment').spec;
  const [container] = template.spec.containers;

  test('kubernetes.yaml is valid YAML with a single namespace', () => {
    expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
    expect(new Set(resources.map(({ metadata }) => metadata.namespace)).size).toBe(1);
  });

  test('the selectors in kubernetes.yaml match the pods of its deployment', () => {
    const { labels } = template.metadata;
    const service = find('Service');
    const budget = find('PodDisruptionBudget').spec;
    expect([selector.matchLabels, service.spec.selector, budget.selector.matchLabels]).toEqual([
      labels,
      labels,
      labels,
    ]);
    expect(budget.minAvailable).toBeLessThan(replicas);
    const [{ http }] = find('Ingress').spec.rules;
    for (const { backend } of http.paths)
      expect(backend.service).toEqual({ name: service.metadata.name, port: { name: service.spec.ports[0].name } });
    expect(service.spec.ports[0].targetPort).toBe(container.ports[0].name);
  });

  test('the grace period in kubernetes.yaml is longer than the server needs to shut down', () => {
    const delay = container.lifecycle.preStop.sleep.seconds;
    expect(template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(delay + 10);
    expect(container.readinessProbe.periodSeconds).toBeLessThan(delay);
    expect(container.readinessProbe.httpGet.path).toBe('/readyz');
    expect(container.livenessProbe.httpGet.path).toBe('/healthz');
  });

  test('kubernetes.yaml names all paths that sign-in needs', () => {
    const pagesOfSignIn = readFileSync(join(root, 'docs/sign-in.md'), 'utf8');
    const [, paths = ''] = /Sign-in uses (.*?), and links/.exec(pagesOfSignIn) ?? [];
    const names = [...paths.matchAll(/`(\/[\w.-]+)/g)].map(([, name]) => name);
    expect(names).toHaveLength(5);
    for (const name of names) expect(readDoc('kubernetes.yaml')).toMatch(new RegExp(`${name}\\b`));
  });

  test('every secret file in kubernetes.yaml is both created and mounted', () => {
    const comment = readDoc('kubernetes.yaml').split('apiVersion')[0];
    const [{ mountPath }] = container.volumeMounts;
    const paths: string[] = container.env.flatMap(({ name, value }: { name: string; value: string }) =>
      name.endsWith('_FILE') ? [value] : [],
    );
    expect(paths).toHaveLength(2);
    for (const path of paths) {
      expect(path.startsWith(`${mountPath}/`)).toBe(true);
      expect(comment).toContain(`--from-literal=${path.slice(mountPath.length + 1)}=`);
    }
  });
});

describe('The example proxy configurations', () => {
  test.each(['nginx.conf', 'Caddyfile'])(
    'the example proxy configuration %s hides probes and metrics and never retries a POST request',
    (file) => {
      const lines = readDoc(file)
        .split('\n')
        .filter((line) => !line.trim().startsWith('#'))
        .join('\n');
      for (const name of ['healthz', 'readyz', 'metrics']) expect(lines).toContain(name);
      expect(lines).not.toMatch(/non_idempotent|lb_retry_match/);
    },
  );
});

/** Runs the programs that read these files. The tests of a program that is not installed are skipped. */
describe('Example files checked with the original programs', () => {
  const searchPath = `${process.env.PATH}:/usr/sbin`;
  const isInstalled = (program: string) =>
    spawnSync('which', [program], { env: { ...process.env, PATH: searchPath } }).status === 0;
  /** Defines a test that needs programs. The title of a skipped test says which package of Debian to install. */
  const testWith = (programs: Record<string, string>, title: string, run: () => void) => {
    const packages = Object.entries(programs).flatMap(([program, name]) => (isInstalled(program) ? [] : [name]));
    if (packages.length === 0) test(title, run);
    else test.skip(`${title} (skipped: install ${packages.join(' and ')} of Debian to run this test)`, run);
  };
  const check = (program: string, ...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(program, args, {
      encoding: 'utf8',
      env: { ...process.env, PATH: searchPath },
    });
    expect({ status, output: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, output: '' });
  };

  testWith({ promtool: 'prometheus' }, 'promtool accepts the alert rules, and the alerts fire as documented', () => {
    check('promtool', 'check', 'config', join(folder, 'prometheus.yml'));
    check('promtool', 'test', 'rules', join(root, 'test/docs/prometheus-rules.test.yml'));
  });

  testWith({ nginx: 'nginx', openssl: 'openssl' }, 'nginx accepts the example nginx.conf', () => {
    const temporary = createTemporaryFolder();
    const key = [
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-keyout',
      join(temporary, 'key.pem'),
    ];
    const certificate = ['-subj', '/CN=ads.example.com', '-out', join(temporary, 'fullchain.pem')];
    check('openssl', 'req', '-x509', ...key, ...certificate);
    writeFileSync(join(temporary, 'site'), readDoc('nginx.conf').replaceAll('/etc/ssl/ads.example.com', temporary));
    const server = `pid ${temporary}/pid; error_log stderr; events {} http { access_log off; include ${temporary}/site; }`;
    writeFileSync(join(temporary, 'nginx.conf'), server);
    check('nginx', '-t', '-p', temporary, '-c', join(temporary, 'nginx.conf'));
  });

  testWith({ caddy: 'caddy' }, 'Caddy accepts the example Caddyfile', () => {
    check('caddy', 'adapt', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile'));
  });

  testWith({ 'systemd-analyze': 'systemd' }, 'systemd accepts the example service unit', () => {
    const temporary = createTemporaryFolder();
    const unit = join(temporary, 'ad-library-mcp.service');
    writeFileSync(unit, readDoc('ad-library-mcp.service').replace('/usr/bin/node', process.execPath));
    check('systemd-analyze', 'verify', unit);
  });
});
