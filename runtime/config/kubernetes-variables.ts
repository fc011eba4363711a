/** Variables that Kubernetes puts into every pod, whatever runs in it: where each Service can be met. */
const HOST = "_SERVICE_HOST";

/** What follows the Service's name in a variable's name. */
const REST =
  /^_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;

/** What `<SERVICE>_PORT` is there; by hand somebody would write a number. */
const PLACE = /^(tcp|udp|sctp):\/\//;

/**
 * Names of such variables, of all Services that the environment tells of: for a Service causeway-worker
 * CAUSEWAY_WORKER_SERVICE_HOST, CAUSEWAY_WORKER_PORT and others. They may begin as settings do, and nobody
 * has misspelt one.
 * Source: Kubernetes, "Service", "Environment variables"
 */
export function kubernetesVariables(
  env: Readonly<Record<string, string | undefined>>,
): ReadonlySet<string> {
  const names = Object.keys(env);
  const services = names
    .filter((name) => name.endsWith(HOST))
    .map((name) => name.slice(0, -HOST.length))
    .filter((service) => PLACE.test(env[`${service}_PORT`] ?? ""));
  const isOf = (service: string, name: string) =>
    name.startsWith(service) && REST.test(name.slice(service.length));
  return new Set(names.filter((name) => services.some((service) => isOf(service, name))));
}
