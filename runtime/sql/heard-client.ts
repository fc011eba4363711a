/** A connection to PostgreSQL that can be lost at any moment without ending the process. */
import { Client, type ClientConfig } from "pg";

/**
 * A connection whose errors are always heard; who uses it meets them with the next statement. Pools, TypeORM
 * and BullMQ hand connections over with a moment between their own listeners, or use them without any, and
 * a session that the server ends just then would end the process.
 */
export class HeardClient extends Client {
  constructor(config?: string | ClientConfig) {
    super(config);
    this.on("error", () => undefined);
  }
}
