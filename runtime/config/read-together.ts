/** Settings of several places: what is wrong in all of them is told at once. */
import { ConfigError, type ConfigFault } from "./config.js";

/** Readers by name, each of which throws ConfigError for what is wrong in its place. */
type Readers = Readonly<Record<string, () => unknown>>;

/**
 * What the readers give, under their names.
 * @throws ConfigError with the faults of all of them, in their order; at once what else a reader throws
 */
export function readTogether<R extends Readers>(
  readers: R,
): { readonly [Name in keyof R]: ReturnType<R[Name]> } {
  const faults: ConfigFault[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, read] of Object.entries(readers)) {
    faults.push(...settingFaults(() => (values[name] = read())));
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return values as { readonly [Name in keyof R]: ReturnType<R[Name]> };
}

/** Every fault that a reader of settings finds. */
export function settingFaults(read: () => unknown): readonly ConfigFault[] {
  try {
    read();
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}
