package stripe

// Version is the version of the stripe headers that this program writes.
const Version = version
