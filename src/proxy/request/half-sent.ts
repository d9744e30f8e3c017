/** More is not read of a request that is refused. */
const maxReadBytes = 64 * 1024;

/** Whether more of a body is to come than what is here: a client that has sent all of it may go on with its connection. */
export async function isHalfSent({ body, bodyUsed }: Pick<Request, "body" | "bodyUsed">): Promise<boolean> {
  if (body === null) return false;
  if (bodyUsed || body.locked) return true;
  const reader = body.getReader();
  for (let readBytes = 0; readBytes <= maxReadBytes;) {
    const read = await Promise.race([reader.read().catch(() => undefined), untilRead()]);
    if (read === undefined) return true;
    if (read.done) return false;
    readBytes += read.value.length;
  }
  return true;
}

/** What is in memory is read within a few ticks. */
async function untilRead(): Promise<undefined> {
  for (let tick = 0; tick < 3; tick++) await new Promise(setImmediate);
  return undefined;
}
