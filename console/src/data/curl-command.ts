/** Lists the models. Where `/v1` has a port of its own, only the operator knows the address under which clients reach it. */
export function curlCommand(key: string, separatePorts: boolean | undefined): string {
  const origin = separatePorts === true ? "http://ADDRESS" : location.origin;
  return `curl ${origin}/v1/models -H "Authorization: Bearer ${key}"`;
}
