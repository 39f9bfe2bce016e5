package frame

// Version is the version of the frames that this program speaks.
const Version = version
