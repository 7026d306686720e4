package trendmill

import io.delta.storage.HDFSLogStore
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths, StandardCopyOption}
import java.util.UUID
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/** Commits to a table in a folder: whole, and never over another's, whichever processes write at once.
  *
  * Hadoop looks whether a local file is there and then renames over it, so that of two processes that commit in the same
  * moment one loses its rows. The system makes a link in one step, and refuses where the name is taken.
  */
class LinkedLogStore(configuration: Configuration) extends HDFSLogStore(configuration) {

  override def write(
      path: Path,
      actions: java.util.Iterator[String],
      overwrite: java.lang.Boolean,
      configuration: Configuration
  ): Unit = {
    val file = Paths.get(path.toUri.getPath)
    Files.createDirectories(file.getParent)
    val making = file.resolveSibling(s".${file.getFileName}.${UUID.randomUUID}.tmp")
    try {
      val writer = Files.newBufferedWriter(making, UTF_8)
      try actions.forEachRemaining(action => writer.append(action).append('\n'))
      finally writer.close()
      if (overwrite) Files.move(making, file, StandardCopyOption.ATOMIC_MOVE)
      else Files.createLink(file, making)
    } finally Files.deleteIfExists(making)
  }
}
