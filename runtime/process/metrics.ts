/** Prometheus metrics: one page per process, names with base-unit suffixes. */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import { shareUnderway } from "./task.js";

/** A counter of this process; only ever rises. */
export type MetricCounter = Counter;
/** A gauge of this process. */
export type MetricGauge = Gauge;
/** A histogram of this process. */
export type MetricHistogram = Histogram;

/** Histogram buckets in seconds: from a cached answer to a call that is about to time out. */
const DEFAULT_BUCKETS_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** The metrics of one process. Label values must come from a bounded set. */
export interface Metrics {
  readonly registry: Registry;
  /**
   * Makes a counter; `collect` brings it up to date when a page is asked for. Asking again for the
   * same name gives the same counter.
   */
  counter(
    name: string,
    help: string,
    labels?: readonly string[],
    collect?: (counter: MetricCounter) => void | Promise<void>,
  ): MetricCounter;
  /** Makes a gauge; `collect` sets it when a page is asked for. Same name, same gauge. */
  gauge(
    name: string,
    help: string,
    labels?: readonly string[],
    collect?: (gauge: MetricGauge) => void | Promise<void>,
  ): MetricGauge;
  /** Makes a histogram; default buckets are seconds from 0.001 to 10. Same name, same histogram. */
  histogram(
    name: string,
    help: string,
    labels?: readonly string[],
    buckets?: readonly number[],
  ): MetricHistogram;
  /** Metrics of the same page that all have these labels as well. */
  labelled(labels: Readonly<Record<string, string>>): Metrics;
  /** The page for `GET /metrics` in Prometheus text format. */
  page(): Promise<string>;
}

/** Whoever collects pages gives up after some ten seconds, and all of the page is lost to him then. */
const READ_BOUND_MS = 2_000;

/**
 * Makes figures of one page share one read: a page collects all its gauges at once, and one that is
 * set by another's `collect` would show what it was on the page before. A read that takes longer than
 * the bound, as of a database that is silent, holds up no page: it goes on, and is not begun once more.
 * @returns undefined where the read has not ended within `boundMs`
 */
export function sharedRead<T>(
  read: () => Promise<T>,
  boundMs = READ_BOUND_MS,
): () => Promise<T | undefined> {
  const shared = shareUnderway(read);
  return async () => {
    let timer: NodeJS.Timeout | undefined;
    const bound = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), boundMs);
    });
    try {
      return await Promise.race([shared(), bound]);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** What `createMetrics` may be told. */
export interface MetricsOptions {
  /** Also export the process's own figures (memory, CPU, event loop); default true. */
  readonly processMetrics?: boolean;
}

/** Makes an empty registry with, unless switched off, the process's own figures. */
export function createMetrics(options: MetricsOptions = {}): Metrics {
  const registry = new Registry();
  if (options.processMetrics ?? true) {
    collectDefaultMetrics({ register: registry });
  }
  return metricsIn(registry, [registry]);
}

/** @param all registries of the page */
function metricsIn(registry: Registry, all: Registry[]): Metrics {
  return {
    registry,
    counter(name, help, labels = [], collect) {
      const known = registry.getSingleMetric(name);
      if (known instanceof Counter) return known;
      const counter: MetricCounter = new Counter({
        name,
        help,
        labelNames: [...labels],
        registers: [registry],
        ...(collect === undefined ? {} : { collect: () => collect(counter) }),
      });
      return counter;
    },
    gauge(name, help, labels = [], collect) {
      const known = registry.getSingleMetric(name);
      if (known instanceof Gauge) {
        return known;
      }
      const gauge: MetricGauge = new Gauge({
        name,
        help,
        labelNames: [...labels],
        registers: [registry],
        ...(collect === undefined ? {} : { collect: () => collect(gauge) }),
      });
      return gauge;
    },
    histogram(name, help, labels = [], buckets = DEFAULT_BUCKETS_SECONDS) {
      const known = registry.getSingleMetric(name);
      return known instanceof Histogram
        ? known
        : new Histogram({
            name,
            help,
            labelNames: [...labels],
            buckets: [...buckets],
            registers: [registry],
          });
    },
    labelled(labels) {
      const own = new Registry();
      own.setDefaultLabels(labels);
      all.push(own);
      return metricsIn(own, all);
    },
    page: async () => (await Promise.all(all.map((one) => one.metrics()))).join("\n"),
  };
}
